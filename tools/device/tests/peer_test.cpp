// Two devices: copies between them need no rights, kernels that touch the other one's memory do. Skipped where there is
// one device.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

constexpr size_t kCount = 1024;
constexpr size_t kBytes = kCount * sizeof(int);

class Peer : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    int devices = 0, reachable = 0;
    ASSERT_CU(CU(cuDeviceGetCount)(&devices));
    if (devices > 1) {
      ASSERT_CU(CU(cuDeviceCanAccessPeer)(&reachable, 1, 0));
    }
    if (reachable == 0) GTEST_SKIP() << "no two devices that reach each other's memory";
    here_ = ints(kCount, 5);
    ASSERT_CU(CU(cuCtxCreate)(&second_, nullptr, 0, 1));
    ASSERT_CU(CU(cuModuleLoad)(&there_module_, cubin()));
    there_ = ints(kCount, 9);
  }
  void TearDown() override {
    if (second_ != nullptr) CU(cuCtxDestroy)(second_);
    DriverTest::TearDown();
  }

  // A kernel of the second device adds 1 to what lies there. What the device says of it.
  CUresult add_over_there(CUdeviceptr values) {
    CUfunction add = nullptr;
    int by = 1;
    int count = kCount;
    void* parameters[] = {&values, &by, &count};
    EXPECT_CU(CU(cuCtxSetCurrent)(second_));
    EXPECT_CU(CU(cuModuleGetFunction)(&add, there_module_, "add"));
    if (const CUresult result = CU(cuLaunchKernel)(add, 1, 1, 1, kCount, 1, 1, 0, nullptr, parameters, nullptr);
        result != 0)
      return result;
    return CU(cuCtxSynchronize)();
  }
  std::vector<int> values_here(CUdeviceptr values) {
    EXPECT_CU(CU(cuCtxSetCurrent)(context_));
    return read_ints(values, kCount);
  }

  // Memory of the first device behind addresses of its own, which devices reach by cuMemSetAccess alone.
  CUdeviceptr mapped(const std::vector<int>& devices) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    size_t unit = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = 0;
    EXPECT_CU(CU(cuMemGetAllocationGranularity)(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_CU(CU(cuMemAddressReserve)(&base, unit, 0, 0, 0));
    EXPECT_CU(CU(cuMemCreate)(&handle, unit, &properties, 0));
    EXPECT_CU(CU(cuMemMap)(base, unit, 0, handle, 0));
    for (const int device : devices) {
      const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      EXPECT_CU(CU(cuMemSetAccess)(base, unit, &access, 1));
    }
    EXPECT_CU(CU(cuCtxSetCurrent)(context_));
    EXPECT_CU(CU(cuMemsetD32)(base, 5, kCount));
    EXPECT_CU(CU(cuCtxSynchronize)());
    return base;
  }

  CUcontext second_ = nullptr;
  CUmodule there_module_ = nullptr;
  CUdeviceptr here_ = 0;
  CUdeviceptr there_ = 0;
};

// CUDA C++ Programming Guide, peer-to-peer memory copy: without access such copies are staged through the host.
TEST_F(Peer, CopiesNeedNoRights) {
  ASSERT_CU(CU(cuMemcpyPeer)(here_, context_, there_, second_, kBytes));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(std::vector<int>(kCount, 9), values_here(here_));
  ASSERT_CU(CU(cuMemsetD32)(here_, 6, kCount));
  ASSERT_CU(CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuMemcpyPeerAsync)(there_, second_, here_, context_, kBytes, nullptr));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(std::vector<int>(kCount, 6), values_here(there_));
}

// Addresses tell the devices, as all memory is in one address space.
TEST_F(Peer, CopiesWithoutContextsNeedNoRights) {
  ASSERT_CU(CU(cuMemcpyDtoD)(here_, there_, kBytes));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(std::vector<int>(kCount, 9), values_here(here_));
  ASSERT_CU(CU(cuMemcpy)(there_, here_, kBytes / 2));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(9, values_here(there_)[0]);
}

// cuda_runtime_api.h of cudaMemcpyPeer: asynchronous with respect to the host, serialized with all pending and future
// work in the current, the source's and the destination's device. cudaMemcpy3DPeer likewise.
class PeerOrder : public Peer, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Peer::SetUp();
    if (IsSkipped()) return;
    EXPECT_CU(CU(cuStreamCreate)(&there_stream_, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(CU(cuCtxSetCurrent)(context_));
    EXPECT_CU(CU(cuStreamCreate)(&here_stream_, CU_STREAM_NON_BLOCKING));
  }
  // The host does not wait: the gate is shut.
  void copy(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context) {
    if (!GetParam()) {
      EXPECT_CU(CU(cuMemcpyPeer)(to, to_context, from, from_context, kBytes));
      return;
    }
    CUDA_MEMCPY3D_PEER box = {};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.srcContext = from_context;
    box.dstDevice = to;
    box.dstContext = to_context;
    box.WidthInBytes = kBytes;
    box.Height = box.Depth = 1;
    EXPECT_CU(CU(cuMemcpy3DPeer)(&box));
  }
  void hold(CUstream stream, Gate& gate) {
    const auto flag = reinterpret_cast<CUdeviceptr>(gate.flag());
    EXPECT_CU(CU(cuStreamWaitValue32)(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void open_and_wait(Gate& gate) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time for what does not wait
    gate.open();
    for (const CUcontext context : {second_, context_}) {
      EXPECT_CU(CU(cuCtxSetCurrent)(context));
      EXPECT_CU(CU(cuCtxSynchronize)());
    }
  }

  CUstream here_stream_ = nullptr;
  CUstream there_stream_ = nullptr;
};

TEST_P(PeerOrder, ACopyComesBehindTheWorkOfBothContexts) {
  for (const bool there : {false, true}) {
    SCOPED_TRACE(there ? "it writes what the other context's work writes" : "it reads that");
    Gate gate;
    ASSERT_CU(CU(cuCtxSetCurrent)(second_));
    ASSERT_CU(CU(cuMemsetD32)(there_, 9, kCount));
    ASSERT_CU(CU(cuCtxSynchronize)());
    hold(there_stream_, gate);
    ASSERT_CU(CU(cuMemsetD32Async)(there_, there ? 4 : 11, kCount, there_stream_));
    ASSERT_CU(CU(cuCtxSetCurrent)(context_));
    copy(there ? there_ : here_, there ? second_ : context_, there ? here_ : there_, there ? context_ : second_);
    open_and_wait(gate);
    EXPECT_EQ(std::vector<int>(kCount, 11), values_here(there ? there_ : here_));
  }
}

TEST_P(PeerOrder, LaterWorkOfBothContextsComesBehindACopy) {
  Gate gate;
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  const CUdeviceptr copied = ints(kCount, 1);
  hold(here_stream_, gate);
  ASSERT_CU(CU(cuMemsetD32Async)(here_, 7, kCount, here_stream_));
  copy(there_, second_, here_, context_);
  ASSERT_CU(CU(cuMemsetD32Async)(here_, 8, kCount, nullptr));
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  ASSERT_CU(CU(cuMemcpyPeerAsync)(copied, context_, there_, second_, kBytes, there_stream_));
  ASSERT_CU(CU(cuMemsetD32Async)(there_, 3, kCount, there_stream_));
  open_and_wait(gate);
  EXPECT_EQ(std::vector<int>(kCount, 7), values_here(copied));
  EXPECT_EQ(std::vector<int>(kCount, 3), values_here(there_));
  EXPECT_EQ(std::vector<int>(kCount, 8), values_here(here_));
}

// One copy behind the other, whichever context each is called in.
TEST_P(PeerOrder, CopiesComeInOrderWhicheverContextIsCurrent) {
  Gate gate;
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  const CUdeviceptr last = ints(kCount, 1);
  hold(here_stream_, gate);
  ASSERT_CU(CU(cuMemsetD32Async)(here_, 7, kCount, here_stream_));
  copy(there_, second_, here_, context_);
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  copy(last, context_, there_, second_);
  ASSERT_CU(CU(cuMemsetD32Async)(there_, 4, kCount, there_stream_));
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  copy(here_, context_, there_, second_);
  open_and_wait(gate);
  EXPECT_EQ(std::vector<int>(kCount, 7), values_here(last));
  EXPECT_EQ(std::vector<int>(kCount, 4), values_here(here_));
}

INSTANTIATE_TEST_SUITE_P(Calls, PeerOrder, testing::Bool(), [](const testing::TestParamInfo<bool>& box) {
  return box.param ? "cuMemcpy3DPeer" : "cuMemcpyPeer";
});

// No documentation says so of mappings: docs/real-driver.md.
TEST_F(Peer, CopiesOfMappingsNeedNoRightsOfTheOtherDevice) {
  const CUdeviceptr memory = mapped({0});
  ASSERT_CU(CU(cuMemcpyPeer)(there_, second_, memory, context_, kBytes));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(std::vector<int>(kCount, 5), values_here(there_));
}

TEST_F(Peer, KernelsReachMappingsThatTheirDeviceHasRightsOn) {
  const CUdeviceptr memory = mapped({0, 1});
  EXPECT_CU(add_over_there(memory));
  EXPECT_EQ(std::vector<int>(kCount, 6), values_here(memory));
}

TEST_F(Peer, AccessIsAllowedAndDisallowedOnce) {
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  EXPECT_EQ(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, CU(cuCtxDisablePeerAccess)(context_));
  ASSERT_CU(CU(cuCtxEnablePeerAccess)(context_, 0));
  EXPECT_EQ(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CU(cuCtxEnablePeerAccess)(context_, 0));
  EXPECT_CU(add_over_there(here_));
  EXPECT_EQ(std::vector<int>(kCount, 6), values_here(here_));
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  EXPECT_CU(CU(cuCtxDisablePeerAccess)(context_));
  EXPECT_CU(CU(cuCtxEnablePeerAccess)(context_, 0));
  EXPECT_CU(add_over_there(here_));
}

TEST_F(Peer, KernelsFaultWithoutAccess) {
  IN_A_PROCESS_OF_ITS_OWN();
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, add_over_there(here_));
}

TEST_F(Peer, KernelsFaultOnceAccessIsDisallowed) {
  IN_A_PROCESS_OF_ITS_OWN();
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  ASSERT_CU(CU(cuCtxEnablePeerAccess)(context_, 0));
  ASSERT_CU(add_over_there(here_));
  ASSERT_CU(CU(cuCtxDisablePeerAccess)(context_));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, add_over_there(here_));
}

// What a context is allowed says nothing of mappings.
TEST_F(Peer, KernelsFaultOnMappingsWithoutRights) {
  IN_A_PROCESS_OF_ITS_OWN();
  const CUdeviceptr memory = mapped({0});
  ASSERT_CU(CU(cuCtxSetCurrent)(second_));
  ASSERT_CU(CU(cuCtxEnablePeerAccess)(context_, 0));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, add_over_there(memory));
}

}  // namespace
}  // namespace reprise::sim_test
