// What a later call answers after a deferred one failed.
#include "replay/queue/faults.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

TEST(FaultsTest, ARefusedOrderIsToldOnceWithTheDriversCode) {
  Faults faults;
  faults.report(CUDA_SUCCESS);
  EXPECT_EQ(faults.take(), CUDA_SUCCESS);
  faults.report(CUDA_ERROR_INVALID_HANDLE);
  faults.report(CUDA_ERROR_INVALID_VALUE);  // the first is told
  EXPECT_EQ(faults.take(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(faults.take(), CUDA_SUCCESS);
}

TEST(FaultsTest, LostWorkIsToldByEveryCallWhateverElseHappens) {
  for (const bool order_first : {false, true}) {
    Faults faults;
    if (order_first) faults.report(CUDA_ERROR_INVALID_HANDLE);
    EXPECT_TRUE(faults.lose(CUDA_ERROR_OUT_OF_MEMORY));
    EXPECT_FALSE(faults.lose(CUDA_ERROR_INVALID_VALUE));
    faults.report(CUDA_ERROR_INVALID_VALUE);
    for (int call = 0; call < 3; ++call) EXPECT_EQ(faults.take(), CUDA_ERROR_LAUNCH_FAILED);
  }
}

TEST(FaultsTest, TheDriversOwnStickyErrorIsToldAsItIsAndStays) {
  Faults faults;
  EXPECT_TRUE(faults.lose(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_FALSE(faults.lose(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_EQ(faults.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faults.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
  Faults reported;
  reported.report(CUDA_ERROR_INVALID_HANDLE);
  reported.report(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(reported.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(reported.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace reprise::replay
