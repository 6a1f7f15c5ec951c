// Buffers that kernels filled are read back and scanned before the launch that may use them, as often as that can
// matter.
#include "preload/access/looks.h"

#include "tests/unit/preload/access/launching.h"

namespace reprise {
namespace {

class Looks : public Launching {
 protected:
  void SetUp() override {
    Launching::SetUp();
    handler().reading = true;
    table_ = allocate(4096);
    pointee_ = allocate(4096);
  }
  size_t reads() const { return handler().reads.size(); }
  void fill(CUdeviceptr buffer, std::vector<uint64_t> words) { handler().contents[buffer] = std::move(words); }

  CUdeviceptr table_ = 0;
  CUdeviceptr pointee_ = 0;
};

TEST_F(Looks, FindATableThatAKernelFilled) {
  launch(table_, 1);
  EXPECT_EQ(reads(), 0u);  // nothing has written to it
  fill(table_, {0, 0, pointee_ + 16});
  launch(table_, 2);
  EXPECT_EQ(reads(), 1u);
  EXPECT_TRUE(touches(pointee_));
  EXPECT_EQ(handler().commands.back().accesses.back().parameter_offset, trace::kNoParameter);
  const CUdeviceptr other = allocate(4096);
  fill(table_, {other});
  launch(table_, 2);  // it may have been rebuilt
  EXPECT_TRUE(touches(other));
  EXPECT_FALSE(touches(pointee_));
}

TEST_F(Looks, FollowTablesOfTables) {
  const CUdeviceptr inner = allocate(2048);
  launch(inner, 1);
  launch(table_, 1);
  fill(table_, {inner});
  fill(inner, {7, pointee_});
  launch(table_, 2);
  EXPECT_TRUE(touches(inner));
  EXPECT_TRUE(touches(pointee_));
}

TEST_F(Looks, LeaveAnOperandAloneThatNeverHeldAddresses) {
  launch(table_, 1);
  for (uint64_t i = 0; i < 10; ++i) {
    fill(table_, {i});
    launch(table_, 2);
  }
  EXPECT_EQ(reads(), 4u);  // four different contents
  for (int i = 0; i < 50; ++i) launch(table_, 3);
  EXPECT_EQ(reads(), 4u + 16u);  // the same one every time says less
  fill(table_, {pointee_});
  launch(table_, 4);  // another kernel
  EXPECT_TRUE(touches(pointee_));
  launch(table_, 2);  // the buffer is known to hold addresses now
  EXPECT_TRUE(touches(pointee_));
  EXPECT_EQ(reads(), 4u + 16u + 3u);  // and so may what it points to
}

TEST_F(Looks, GoOnWhereAddressesWereFoundOnce) {
  launch(table_, 1);
  fill(table_, {pointee_});
  launch(table_, 2);
  fill(table_, {});
  for (int i = 0; i < 40; ++i) launch(table_, 2);
  EXPECT_EQ(reads(), 41u);
  const CUdeviceptr fresh = allocate(512);  // and in any buffer of that operand
  launch(fresh, 1);
  fill(fresh, {pointee_});
  launch(fresh, 2);
  EXPECT_TRUE(touches(pointee_));
}

TEST_F(Looks, AreNotMadeUnderAPlanOrInACapture) {
  launch(table_, 1);
  fill(table_, {pointee_});
  handler().reading = false;
  launch(table_, 2);
  EXPECT_FALSE(touches(pointee_));
  handler().reading = true;
  const auto captured = reinterpret_cast<CUstream>(0x7100);
  ASSERT_EQ(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  launch(table_, 2);
  EXPECT_EQ(reads(), 0u);
  CUgraph graph = nullptr;
  cuStreamEndCapture(captured, &graph);
  launch(table_, 2);
  EXPECT_TRUE(touches(pointee_));
}

// A plan that ends with this launch has not said what it touches.
TEST_F(Looks, AreMadeUpForWhereThePlanDoesNotHaveTheLaunch) {
  launch(table_, 1);
  fill(table_, {pointee_});
  handler().reading = false;
  launch(table_, 2);
  EXPECT_TRUE(handler().commands.back().command.blind);
  EXPECT_FALSE(touches(pointee_));
  handler().while_submitting = [] {
    handler().while_submitting = nullptr;
    handler().reading = true;
    return kLookFirst;
  };
  launch(table_, 2);
  EXPECT_FALSE(handler().commands.back().command.blind);
  EXPECT_TRUE(touches(pointee_));
  EXPECT_EQ(handler().commands.back().accesses.size(), 2u);
  EXPECT_EQ(handler().commands.back().command.operand_bytes, 2u * 4096u);
  EXPECT_EQ(handler().commands.back().command.kernel, 0u) << "not to be launched twice";
  launch(pointee_, 3);
  EXPECT_FALSE(handler().commands.back().command.blind) << "there was nothing to look into";
}

TEST_F(Looks, MakeTheLaunchOpaqueWhereAddressesCannotBeRead) {
  launch(table_, 1);
  handler().read_answer = false;
  const uint64_t before = look_counters.not_scanned.load();
  launch(table_, 2);
  EXPECT_FALSE(opaque());  // nothing says that there are any
  EXPECT_EQ(look_counters.not_scanned.load(), before + 1);
  EXPECT_GT(handler().reads.back().patience_ns, 1'000'000'000u);
  launch(table_, 2);
  EXPECT_LT(handler().reads.back().patience_ns, 100'000'000u);  // once is enough
  for (int i = 0; i < 10; ++i) launch(table_, 2);
  EXPECT_EQ(reads(), 3u);
  handler().read_answer = true;
  fill(table_, {pointee_});
  launch(table_, 3);
  EXPECT_TRUE(touches(pointee_));
  handler().read_answer = false;
  launch(table_, 3);
  EXPECT_TRUE(opaque());
  EXPECT_TRUE(touches(pointee_));
}

TEST_F(Looks, KeepWhatACopyRecordsMeanwhile) {
  const CUdeviceptr late = allocate(4096);
  launch(table_, 1);
  fill(table_, {pointee_});
  handler().while_reading = [&] {  // as another thread would
    const CUdeviceptr word[] = {late};
    record_host_copy(table_ + 64, reinterpret_cast<uint64_t>(word), 8);
  };
  for (int i = 0; i < 2; ++i) {  // without and with a table before
    launch(table_, 2);
    EXPECT_TRUE(touches(late));
    EXPECT_TRUE(touches(pointee_));
  }
}

TEST_F(Looks, LargeMemoryIsDataUnlessSomethingUnknownWasCopiedThere) {
  const CUdeviceptr large = allocate(3 << 20);
  launch(large, 1);
  std::vector<uint64_t> words(size_t{3} << 17);
  words.back() = pointee_;
  fill(large, words);
  launch(large, 2);
  EXPECT_EQ(reads(), 0u);
  cuMemcpyDtoD(large, 0x777000, 64);  // memory that no hook saw
  launch(large, 2);
  EXPECT_EQ(reads(), 3u);
  EXPECT_TRUE(touches(pointee_));
}

TEST_F(Looks, ArraysHoldWhatCannotBeSeen) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = reinterpret_cast<CUarray>(0x9990);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = table_;
  copy.WidthInBytes = 64;
  copy.Height = 2;
  cuMemcpy2D(&copy);
  fill(table_, {pointee_});
  launch(table_, 1);
  EXPECT_TRUE(touches(pointee_));
  launch(table_, 1);
}

TEST_F(Looks, OpaqueWorkMayHaveWrittenAnything) {
  for (int i = 0; i < 3; ++i) {
    scripted().layout(nullptr, -1);  // a kernel of which nothing is known
    CUdeviceptr operand = 0;
    void* parameters[] = {&operand};
    cuLaunchKernel(reinterpret_cast<CUfunction>(0x77770000 + i * 0x100), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                   nullptr);
    const CUdeviceptr other = allocate(4096);
    fill(table_, {i % 2 == 0 ? pointee_ : other});
    launch(table_, 1);
    EXPECT_TRUE(touches(i % 2 == 0 ? pointee_ : other)) << i;
  }
}

TEST_F(Looks, WhatIsNotKnownMovesWithDeviceCopies) {
  launch(table_, 1);
  const CUdeviceptr copy = allocate(4096);
  cuMemcpyDtoD(copy, table_, 64);
  fill(copy, {pointee_});
  launch(copy, 2);
  EXPECT_TRUE(touches(pointee_));
}

TEST_F(Looks, AnOverwrittenBufferHoldsWhatWasWritten) {
  launch(table_, 1);
  fill(table_, {pointee_});
  cuMemsetD8(table_, 0, 4096);
  launch(table_, 2);
  EXPECT_EQ(reads(), 0u);
  launch(table_, 2);
  EXPECT_EQ(reads(), 1u);
}

TEST_F(Looks, PinnedMemoryIsSeenWhereItIs) {
  static uint64_t pinned[512];
  std::fill(pinned, pinned + 512, 0);
  ASSERT_EQ(cuMemHostRegister(pinned, sizeof pinned, 0), CUDA_SUCCESS);
  const auto operand = reinterpret_cast<CUdeviceptr>(pinned);
  pinned[3] = pointee_;
  launch(operand, 1);
  EXPECT_TRUE(touches(pointee_));
  EXPECT_EQ(reads(), 0u);  // nothing but the program itself has written to it
  launch(operand, 1);
  ASSERT_EQ(reads(), 2u);  // the kernel may have, there and where that points to
  EXPECT_TRUE(handler().reads[0].after_everything);
  pinned[3] = 0;
  handler().reading = false;
  launch(operand, 1);  // under a plan what was known counts, too
  EXPECT_TRUE(touches(pointee_));
  cuMemHostUnregister(pinned);
}

TEST_F(Looks, ACopyOfPinnedMemoryWaitsForHostFunctions) {
  static uint64_t pinned[512];
  std::fill(pinned, pinned + 512, 0);
  ASSERT_EQ(cuMemHostRegister(pinned, sizeof pinned, 0), CUDA_SUCCESS);
  handler().issue = false;
  cuLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  handler().while_reading = [&] { pinned[0] = pointee_; };  // the host function, when it is its turn
  cuMemcpyHtoDAsync(table_, pinned, 4096, nullptr);
  ASSERT_EQ(reads(), 1u);
  EXPECT_TRUE(handler().reads[0].after_everything);
  launch(table_, 1);
  EXPECT_TRUE(touches(pointee_));
  cuMemcpyHtoDAsync(table_, pinned, 4096, nullptr);
  EXPECT_EQ(reads(), 1u);  // it is done
  cuLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  handler().read_answer = false;  // it waits for the program
  cuMemcpyHtoDAsync(table_, pinned, 4096, nullptr);
  launch(table_, 1);
  EXPECT_TRUE(opaque());
  cuMemHostUnregister(pinned);
}

}  // namespace
}  // namespace reprise
