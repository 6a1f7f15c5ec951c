// What leaves without a copy gives its memory up at once, whatever else is copied meanwhile.
#include "tests/unit/replay/dispatch/planned_device.h"

namespace reprise::replay {
namespace {

class DeparturesTest : public PlannedDevice {
 protected:
  DeparturesTest() : PlannedDevice(PlanBuilder().both_leave()) {}
  uint64_t spared() const { return device_.memory.traffic.spared_bytes; }
  // All that the device can do while copies to the host stand still.
  void settle_but_for_copies_out() {
    const CUstream out = lanes_.stream(Lanes::kToHost);
    for (bool moved = true; moved;) {
      while (executor_.step()) {
      }
      moved = false;
      for (const CUstream stream : device_.driver.streams()) {
        moved = moved || (stream != out && device_.driver.step(stream));
      }
    }
  }
  Lanes& lanes_ = device_.memory.lanes;
};

TEST_F(DeparturesTest, WithoutACopyWaitForNoCopyOfOthers) {
  for (uint64_t iteration = 0; iteration < 2; ++iteration) iterate(iteration);
  const uint64_t before = spared();
  const uint64_t came = lanes_[Lanes::kToDevice].completed;
  for (uint32_t call = 0; call < index_.plan.calls.size(); ++call) submit(call, 2);
  settle_but_for_copies_out();
  EXPECT_EQ(spared(), before + kBytes) << "w, as the host has its bytes";
  EXPECT_GT(lanes_[Lanes::kToHost].issued, lanes_[Lanes::kToHost].completed) << "the sum stands there";
  EXPECT_GT(lanes_[Lanes::kToDevice].completed, came) << "w comes back";
  settle();
  for (uint64_t iteration = 3; iteration < 5; ++iteration) iterate(iteration);
  EXPECT_TRUE(executor_.active());
  device_.driver.run_all();
  for (const uint32_t tensor : {kW, kSum}) {
    for (uint64_t at = 0; at < kBytes; at += 8) {
      ASSERT_EQ(device_.driver.read(address(tensor) + at), model_[tensor][at / 8]) << tensor << " at " << at;
    }
  }
}

}  // namespace
}  // namespace reprise::replay
