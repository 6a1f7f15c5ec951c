// Measuring the link on a fake driver: whichever of its calls fails, nothing is left that could do harm.
#include "replay/measure/link_rates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

TEST(LinkRatesTest, ACopyThatIsRefusedLeavesNoneBehindOnAddressesThatAreGone) {
  for (const char* function :
       {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuMemSetAccess", "cuMemMap", "cuMemUnmap"}) {
    for (const int nth : {1, 2, 5, 300}) {
      testing::SmallDevice device(4, 64 * 1024);
      device.driver.fail(function, nth);
      measure_link_rates(device.memory);
      device.driver.run_all();
      EXPECT_EQ(device.driver.violations, std::vector<std::string>{}) << function << " " << nth;
      EXPECT_EQ(device.memory.chunks.available(), 4u) << function << " " << nth;
    }
  }
}

}  // namespace
}  // namespace reprise::replay
