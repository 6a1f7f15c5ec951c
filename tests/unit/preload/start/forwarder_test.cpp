// While one thread measures the link, the others' allocations neither wait for it nor are refused because of it.
#include "preload/start/forwarder.h"

#include <cuda.h>

#include "preload/driver/driver.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

// The link is so slow here that the measuring takes longer than anything else.
class Measuring : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(driver().cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    free_before_ = free_bytes();
    const char* why = nullptr;
    recorder_ = Recorder::open(trace_.c_str(), &why, false);
    ASSERT_NE(recorder_, nullptr) << why;
    handler_ = make_forwarder(recorder_, nullptr);
    measurer_ = std::thread([this] {
      driver().cuCtxSetCurrent(context_);
      EXPECT_EQ(allocate(64 << 10), CUDA_SUCCESS);
      measured_.store(true);
    });
    while (free_bytes() == free_before_ && !measured_.load()) ::usleep(500);
  }
  void TearDown() override {
    if (measurer_.joinable()) measurer_.join();
    if (recorder_ != nullptr) recorder_->finish();
    std::filesystem::remove(trace_);
    driver().cuDevicePrimaryCtxRelease(0);
  }
  CUresult allocate(uint64_t bytes) {
    AllocateCall call{};
    call.size = bytes;
    call.origin = trace::Origin::alloc;
    CUdeviceptr address = 0;
    return handler_->memory.allocate(call, &address);
  }
  static uint64_t free_bytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(driver().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }

  const std::string trace_ = std::filesystem::temp_directory_path() / ("forwarder_test." + std::to_string(::getpid()));
  CUcontext context_ = nullptr;
  uint64_t free_before_ = 0;
  Recorder* recorder_ = nullptr;
  Handler* handler_ = nullptr;
  std::thread measurer_;
  std::atomic<bool> measured_{false};
};

TEST_F(Measuring, AnotherThreadsAllocationDoesNotWait) {
  ASSERT_FALSE(measured_.load());
  EXPECT_EQ(allocate(64 << 10), CUDA_SUCCESS);
  EXPECT_FALSE(measured_.load());
}

TEST_F(Measuring, AnotherThreadGetsWhatItIsDoneWith) {
  ASSERT_FALSE(measured_.load());
  // All but what the thread that measures asks for itself.
  EXPECT_EQ(allocate(free_before_ - (64 << 10)), CUDA_SUCCESS);
  measurer_.join();
  EXPECT_EQ(free_bytes(), 0u);
}

}  // namespace
}  // namespace reprise
