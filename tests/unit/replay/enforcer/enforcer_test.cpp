// The enforcer on the simulated device, called as hooks call it: what only shows between threads, or after its end.
#include "replay/enforcer/enforcer.h"

#include <cuda.h>

#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

class EnforcerTest : public testing::Test {
 protected:
  void SetUp() override {
    const DriverTable& call = driver();
    ASSERT_EQ(call.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(call.cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(call.cuCtxSetCurrent(context_), CUDA_SUCCESS);
    Config config;
    config.budget.bytes = 64 << 20;
    handler_ = new replay::Enforcer(config, nullptr);  // lives as long as the process, as handlers do
  }
  CUdeviceptr allocate(uint64_t size) {
    AllocateCall call{++calls_, calls_, size, trace::Origin::alloc, 0, context_, CU_STREAM_LEGACY, 0, nullptr};
    CUdeviceptr address = 0;
    EXPECT_EQ(handler_->memory.allocate(call, &address), CUDA_SUCCESS);
    return address;
  }
  CUresult free(CUdeviceptr address, bool stream_ordered) {
    return handler_->memory.release(
        {++calls_, calls_, address, 4 << 20, trace::Origin::alloc, stream_ordered, context_, CU_STREAM_LEGACY, 0});
  }

  CUcontext context_ = nullptr;
  Handler* handler_ = nullptr;
  uint64_t calls_ = 0;
};

// The driver's own per-thread stream does not know of the one that stands for it.
TEST_F(EnforcerTest, ACallOnTheDriversPerThreadStreamComesAfterTheThreadsWork) {
  allocate(4 << 20);
  void* memory = nullptr;
  ASSERT_EQ(driver().cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  std::memset(memory, 0, 4096);
  auto* const go = static_cast<uint32_t*>(memory);
  const CUstream own = handler_->order.stand_in(CU_STREAM_PER_THREAD);
  ASSERT_NE(own, CU_STREAM_PER_THREAD);
  const auto flag = reinterpret_cast<CUdeviceptr>(go);
  const auto wait_value = reinterpret_cast<decltype(&cuStreamWaitValue32)>(driver_symbol("cuStreamWaitValue32_v2"));
  ASSERT_EQ(wait_value(own, flag, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  std::atomic<bool> let_go{false};
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    let_go = true;
    __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
  });
  handler_->order.before_per_thread_call();
  EXPECT_TRUE(let_go) << "the call would run beside what the thread has called before";
  waker.join();
  EXPECT_EQ(driver().cuStreamQuery(own), CUDA_SUCCESS);
}

// As a device of that size answers; a launch could not say it in time. What is smaller may be used in turns.
TEST_F(EnforcerTest, ATensorThatNoCallCouldUseIsRefusedWhenItIsAllocated) {
  CUdeviceptr address = 0;
  const auto ask = [&](uint64_t size) {
    return handler_->memory.allocate(
        {++calls_, calls_, size, trace::Origin::alloc, 0, context_, CU_STREAM_LEGACY, 0, nullptr}, &address);
  };
  EXPECT_EQ(ask(65 << 20), CUDA_ERROR_OUT_OF_MEMORY) << "the budget is 64 MiB";
  EXPECT_EQ(ask(uint64_t{1} << 42), CUDA_ERROR_OUT_OF_MEMORY);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(60 << 20), CUDA_SUCCESS);
}

// Threads may still free when nobody serves calls any more; the addresses are nothing to the driver.
TEST_F(EnforcerTest, AFreeBehindTheEndHasNothingToDo) {
  const CUdeviceptr one = allocate(4 << 20), other = allocate(4 << 20), served = allocate(4 << 20);
  EXPECT_EQ(free(served, false), CUDA_SUCCESS);
  handler_->abandon();
  EXPECT_EQ(driver().cuMemFree(one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(free(one, false), CUDA_SUCCESS);
  EXPECT_EQ(free(other, true), CUDA_SUCCESS);
  CUdeviceptr plain = 0;
  ASSERT_EQ(driver().cuMemAlloc(&plain, 4096), CUDA_SUCCESS);
  EXPECT_EQ(free(plain, false), CUDA_SUCCESS) << "the driver's own memory is the driver's to free";
  EXPECT_EQ(driver().cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace reprise
