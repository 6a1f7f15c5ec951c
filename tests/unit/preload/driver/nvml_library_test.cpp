// NVML as a library of its own, as NVIDIA's driver brings it: found by its name, asked by the device's name.
#include "preload/driver/own_memory.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

TEST(NvmlLibrary, IsLoadedAndAskedForTheDeviceByItsName) {
  EXPECT_EQ(own_bytes(0), std::optional<uint64_t>(12345));
  EXPECT_EQ(own_bytes(1), std::nullopt) << "NVML knows no such device";
}

}  // namespace
}  // namespace reprise
