// The streams that stand for the per-thread default stream, on a fake driver.
#include "replay/enforcer/per_thread.h"

#include "tests/support/test.h"
#include "tests/unit/replay/fake_driver.h"

namespace reprise::replay {
namespace {

class PerThreadTest : public ::testing::Test {
 protected:
  static void ended(void* self, CUcontext, CUstream stream) noexcept {
    static_cast<PerThreadTest*>(self)->ended_.push_back(stream);
  }
  uint64_t waits() const { return driver_.count("cuStreamSynchronize"); }

  testing::FakeDriver driver_;
  std::vector<CUstream> ended_;
  PerThreadStreams streams_{&ended, this};
};

TEST_F(PerThreadTest, EachThreadHasOneInEachContext) {
  const CUstream own = streams_.of_this_thread();
  EXPECT_NE(own, CU_STREAM_PER_THREAD);
  EXPECT_EQ(streams_.of_this_thread(), own);
  const CUcontext first = driver_.current;
  driver_.current = reinterpret_cast<CUcontext>(uint64_t{0xd0});
  const CUstream elsewhere = streams_.of_this_thread();
  EXPECT_NE(elsewhere, own);
  driver_.current = first;
  CUstream other = nullptr;
  std::thread([&] { other = streams_.of_this_thread(); }).join();
  EXPECT_NE(other, own);
  EXPECT_EQ(ended_, std::vector<CUstream>{other}) << "the thread has ended";
  streams_.forget(first);
  EXPECT_NE(streams_.of_this_thread(), own) << "it went with its context";
  driver_.current = reinterpret_cast<CUcontext>(uint64_t{0xd0});
  EXPECT_EQ(streams_.of_this_thread(), elsewhere);
}

// Work that a forwarded call has put on the driver's own stream comes before what the thread calls next.
TEST_F(PerThreadTest, WaitsOnceForWorkOfTheDriversOwn) {
  streams_.of_this_thread();
  EXPECT_EQ(waits(), 0u);
  streams_.driver_works();
  std::thread([&] { streams_.of_this_thread(); }).join();
  EXPECT_EQ(waits(), 0u) << "another thread's";
  driver_.fail("cuStreamSynchronize", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  streams_.of_this_thread();
  EXPECT_EQ(waits(), 1u);
  streams_.of_this_thread();
  EXPECT_EQ(waits(), 2u) << "the driver refused to wait";
  streams_.of_this_thread();
  EXPECT_EQ(waits(), 2u);
}

}  // namespace
}  // namespace reprise::replay
