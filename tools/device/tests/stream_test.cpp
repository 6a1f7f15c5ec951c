// Streams and events: what runs after what, and what does not wait. Order is forced by gates, never by time.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Streams : public DriverTest {
 protected:
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream made = nullptr;
    EXPECT_CU(CU(cuStreamCreate)(&made, flags));
    return made;
  }
  CUevent event(unsigned flags = CU_EVENT_DEFAULT) {
    CUevent made = nullptr;
    EXPECT_CU(CU(cuEventCreate)(&made, flags));
    return made;
  }
  CUresult hold(Gate& gate, CUstream on) {
    int* flag = gate.flag();
    return launch("hold", {&flag}, on);
  }
  CUresult store(CUdeviceptr to, int value, CUstream on) { return launch("store", {&to, &value}, on); }
};

TEST_F(Streams, LaunchesReturnBeforeTheyRun) {
  Gate gate;
  const CUstream one = stream();
  ASSERT_CU(hold(gate, one));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(one));
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_CU(CU(cuStreamQuery)(one));
}

TEST_F(Streams, CopiesPassARunningKernelOnAnotherStream) {
  Gate gate;
  const CUstream one = stream(), two = stream();
  const CUdeviceptr memory = allocate(64);
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, 64, 0));
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pinned, 64, two));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned, memory, 64, two));
  EXPECT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(one));
}

TEST_F(Streams, LegacyStreamWaitsForBlockingStreams) {
  Gate gate;
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = ints(1, 0);
  ASSERT_CU(hold(gate, blocking));
  ASSERT_CU(store(memory, 1, nullptr));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(nullptr));
  gate.open();
  EXPECT_EQ(1, read_ints(memory, 1)[0]);
}

TEST_F(Streams, BlockingStreamsWaitForTheLegacyStream) {
  Gate gate;
  const CUstream blocking = stream(CU_STREAM_DEFAULT), free = stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = allocate(64);
  ASSERT_CU(hold(gate, nullptr));
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 1, 64, blocking));
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 2, 64, free));
  EXPECT_CU(CU(cuStreamSynchronize)(free));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(blocking));
  gate.open();
  EXPECT_CU(CU(cuStreamSynchronize)(blocking));
}

TEST_F(Streams, PerThreadStreamIsItsOwn) {
  Gate gate;
  ASSERT_CU(hold(gate, CU_STREAM_PER_THREAD));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(CU_STREAM_PER_THREAD));
  CUresult other = CUDA_ERROR_UNKNOWN;
  std::thread thread([&] {
    CU(cuCtxSetCurrent)(context_);
    other = CU(cuStreamQuery)(CU_STREAM_PER_THREAD);
  });
  thread.join();
  EXPECT_CU(other);
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU_AS("cuStreamQuery_ptsz", cuStreamQuery)(nullptr));
  gate.open();
  EXPECT_CU(CU_AS("cuStreamSynchronize_ptsz", cuStreamSynchronize)(nullptr));
}

TEST_F(Streams, PerThreadCopyDoesNotWaitForTheLegacyKernelOfNobody) {
  Gate gate;
  const CUstream free = stream();
  const CUdeviceptr memory = allocate(64);
  std::vector<char> bytes(64, 5);
  ASSERT_CU(hold(gate, free));
  EXPECT_CU(CU_AS("cuMemcpyHtoD_v2_ptds", cuMemcpyHtoD)(memory, bytes.data(), 64));
}

TEST_F(Streams, EventOrdersStreams) {
  Gate gate;
  const CUstream one = stream(), two = stream();
  const CUevent mark = event();
  const CUdeviceptr memory = ints(1, 0);
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(store(memory, 1, one));
  ASSERT_CU(CU(cuEventRecord)(mark, one));
  ASSERT_CU(CU(cuStreamWaitEvent)(two, mark, 0));
  ASSERT_CU(add(memory, 10, 1, two));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(mark));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(two));
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_CU(CU(cuEventQuery)(mark));
  EXPECT_EQ(11, read_ints(memory, 1)[0]);
}

TEST_F(Streams, WaitBindsToTheRecordBeforeIt) {
  Gate gate;
  const CUstream one = stream(), two = stream();
  const CUevent mark = event();
  ASSERT_CU(CU(cuEventRecord)(mark, one));
  ASSERT_CU(CU(cuStreamWaitEvent)(two, mark, 0));
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuEventRecord)(mark, one));
  EXPECT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(mark));
}

TEST_F(Streams, EventsWithoutARecordAreDone) {
  const CUevent mark = event();
  EXPECT_CU(CU(cuEventQuery)(mark));
  EXPECT_CU(CU(cuEventSynchronize)(mark));
  EXPECT_CU(CU(cuStreamWaitEvent)(nullptr, mark, 0));
}

TEST_F(Streams, EventsMeasureTime) {
  const CUevent start = event(), end = event();
  float milliseconds = -1;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime)(&milliseconds, start, end));
  ASSERT_CU(CU(cuEventRecord)(start, nullptr));
  ASSERT_CU(CU(cuEventSynchronize)(start));
  {
    Gate gate;
    ASSERT_CU(hold(gate, nullptr));
    ASSERT_CU(CU(cuEventRecord)(end, nullptr));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuEventElapsedTime)(&milliseconds, start, end));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  ASSERT_CU(CU(cuEventElapsedTime)(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 3.0f);
  const CUevent untimed = event(CU_EVENT_DISABLE_TIMING);
  ASSERT_CU(CU(cuEventRecord)(untimed, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime)(&milliseconds, start, untimed));
}

TEST_F(Streams, DestroyedStreamAndEventFinishTheirWork) {
  Gate gate;
  const CUstream one = stream(), two = stream();
  const CUevent mark = event();
  const CUdeviceptr memory = ints(1, 0);
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(store(memory, 4, one));
  ASSERT_CU(CU(cuEventRecord)(mark, one));
  ASSERT_CU(CU(cuStreamWaitEvent)(two, mark, 0));
  ASSERT_CU(add(memory, 1, 1, two));
  ASSERT_CU(CU(cuEventDestroy)(mark));
  ASSERT_CU(CU(cuStreamDestroy)(one));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(two));
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_EQ(5, read_ints(memory, 1)[0]);
}

TEST_F(Streams, PageableSourceCanBeReused) {
  Gate gate;
  const CUstream one = stream();
  const CUdeviceptr memory = ints(16, 0);
  std::vector<int> values(16, 3);
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, values.data(), 64, one));
  values.assign(16, 8);
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_EQ(std::vector<int>(16, 3), read_ints(memory, 16));
}

// "API synchronization behavior" of the driver API: a copy from pageable memory returns once the bytes are staged; they
// may not be there yet, and streams that do not block do not wait for them. A large copy before it in its direction
// delays it.
TEST_F(Streams, AStagedCopyMayEndBehindItsCall) {
  if (!simulated()) GTEST_SKIP() << "a real driver need not be late";
  constexpr size_t kLarge = 64u << 20;
  const CUstream one = stream();
  const CUdeviceptr large = allocate(kLarge);
  constexpr size_t kInts = 100'000;
  const CUdeviceptr memory = allocate(4 * kInts);
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, kLarge, 0));
  bool late = false;
  for (int i = 0; i < 20 && !late; ++i) {  // its thread may be late, too
    ASSERT_CU(CU(cuMemcpyHtoDAsync)(large, pinned, kLarge, one));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<int> values(kInts, i);
    ASSERT_CU(CU(cuMemcpyHtoD)(memory, values.data(), 4 * kInts));
    late = CU(cuStreamQuery)(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY;
    values.assign(kInts, -1);
    EXPECT_EQ(std::vector<int>(kInts, i), read_ints(memory, kInts));
    ASSERT_CU(CU(cuStreamSynchronize)(one));
  }
  EXPECT_TRUE(late);
  ASSERT_CU(CU(cuMemFreeHost)(pinned));
  ASSERT_CU(CU(cuMemFree)(large));
}

// ... but it begins when what its stream had before is done. (The CUDA C++ Programming Guide has copies of up to 64 KB
// asynchronous altogether, so a real driver need not wait.)
TEST_F(Streams, AStagedCopyWaitsForItsStream) {
  if (!simulated()) GTEST_SKIP() << "a real driver need not wait";
  Gate gate;
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = ints(16, 0);
  ASSERT_CU(hold(gate, blocking));
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    opened = true;
    gate.open();
  });
  std::vector<int> values(16, 3);
  EXPECT_CU(CU(cuMemcpyHtoD)(memory, values.data(), 64));
  EXPECT_TRUE(opened);
  opener.join();
  EXPECT_EQ(values, read_ints(memory, 16));
}

TEST_F(Streams, PinnedSourceIsReadWhenItsTurnComes) {
  Gate gate;
  const CUstream one = stream();
  const CUdeviceptr memory = ints(1, 0);
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, 4, 0));
  *static_cast<int*>(pinned) = 1;
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pinned, 4, one));
  *static_cast<int*>(pinned) = 2;
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_EQ(2, read_ints(memory, 1)[0]);
}

TEST_F(Streams, HostFunctionRunsInOrderAndMayNotCallTheDriver) {
  struct Seen {
    std::atomic<int> runs{0};
    CUresult inside = CUDA_SUCCESS;
    CUcontext current = nullptr;
  } seen;
  Gate gate;
  const CUstream one = stream();
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuLaunchHostFunc)(
      one,
      [](void* data) {
        auto* own = static_cast<Seen*>(data);
        own->inside = CU(cuCtxGetCurrent)(&own->current);
        ++own->runs;
      },
      &seen));
  EXPECT_EQ(0, seen.runs);
  gate.open();
  ASSERT_CU(CU(cuStreamSynchronize)(one));
  EXPECT_EQ(1, seen.runs);
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, seen.inside);
}

TEST_F(Streams, FreeWaitsForTheWorkThatUsesTheMemory) {
  Gate gate;
  const CUstream one = stream();
  const CUdeviceptr memory = ints(1u << 20, 0);
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(store(memory, 1, one));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gate.open();
  });
  EXPECT_CU(CU(cuMemFree)(memory));
  EXPECT_CU(CU(cuStreamQuery)(one));
  opener.join();
  EXPECT_CU(CU(cuCtxSynchronize)());
}

TEST_F(Streams, ManyThreadsLaunch) {
  const CUdeviceptr memory = ints(8, 0);
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      CU(cuCtxSetCurrent)(context_);
      const CUstream own = stream();
      for (int i = 0; i < 500; ++i) EXPECT_CU(add(memory + static_cast<unsigned>(t) * 4, 1, 1, own));
      EXPECT_CU(CU(cuStreamSynchronize)(own));
      EXPECT_CU(CU(cuStreamDestroy)(own));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::vector<int>(8, 500), read_ints(memory, 8));
}

TEST_F(Streams, AttributesAreKept) {
  const CUstream one = stream(), two = stream();
  CUstreamAttrValue value = {};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  ASSERT_CU(CU(cuStreamSetAttribute)(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  ASSERT_CU(CU(cuStreamCopyAttributes)(two, one));
  CUstreamAttrValue read = {};
  ASSERT_CU(CU(cuStreamGetAttribute)(two, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &read));
  EXPECT_EQ(CU_SYNC_POLICY_YIELD, read.syncPolicy);
}

// cuda.h of cuStreamWaitValue32: what is ordered by values is to be ordered by events, too, else the order may be
// wrong, and the program hang. So the write comes first.
TEST_F(Streams, ValuesInMemoryOrderStreams) {
  Gate gate;
  const CUstream one = stream(), two = stream();
  const CUevent written = event();
  const CUdeviceptr word = ints(1, 0), memory = ints(1, 0);
  ASSERT_CU(hold(gate, one));
  ASSERT_CU(CU(cuStreamWriteValue32)(one, word, 3, 0));
  ASSERT_CU(CU(cuEventRecord)(written, one));
  ASSERT_CU(CU(cuStreamWaitEvent)(two, written, 0));
  ASSERT_CU(CU(cuStreamWaitValue32)(two, word, 3, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(store(memory, 9, two));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(two));
  gate.open();
  EXPECT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_EQ(9, read_ints(memory, 1)[0]);
  EXPECT_EQ(3, read_ints(word, 1)[0]);
}

// Driver 580 waits for good here, with the write behind the wait.
TEST_F(Streams, ValuesAloneOrderStreamsOfTheSimulatedDevice) {
  if (!simulated()) GTEST_SKIP() << "a real driver may order them otherwise";
  const CUstream one = stream(), two = stream();
  const CUdeviceptr word = ints(1, 0), memory = ints(1, 0);
  ASSERT_CU(CU(cuStreamWaitValue32)(two, word, 3, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(store(memory, 9, two));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(two));
  ASSERT_CU(CU(cuStreamWriteValue32)(one, word, 3, 0));
  EXPECT_CU(CU(cuStreamSynchronize)(two));
  EXPECT_EQ(9, read_ints(memory, 1)[0]);
}

}  // namespace
}  // namespace reprise::sim_test
