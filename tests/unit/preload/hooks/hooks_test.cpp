// What the hooks hand to the handler, and what they leave to the driver.
#include <cuda.h>

#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/tracking/allocations.h"
#include "preload/tracking/pools.h"
#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

extern "C" {
CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags);
CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, size_t offset, size_t bytes);
}

namespace reprise {
namespace {

class Hooks : public testing::Test {
 protected:
  void SetUp() override {
    scripted().reset();
    watch(kWatching);
  }
  void TearDown() override { stop_watching(); }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  const SeenCommand& last() { return handler().commands.back(); }
};

CUmemPoolProps plain_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

// What a pool's memory is, the program has said: the handler makes ordinary memory of the current device only.
TEST_F(Hooks, APoolOfItsOwnKindIsTheDriversToServe) {
  const auto reaches_handler = [](const CUmemPoolProps& properties) {
    const auto pool = reinterpret_cast<CUmemoryPool>(0xfade);
    insert_pool(pool, properties);
    const size_t before = handler().allocations.size();
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&address, 1000, pool, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
    forget_pool(pool);
    return handler().allocations.size() != before;
  };
  watch(kWatching | kManaging);
  EXPECT_TRUE(reaches_handler(plain_pool()));
  CUmemPoolProps own = plain_pool();
  own.location.type = CU_MEM_LOCATION_TYPE_HOST;
  EXPECT_FALSE(reaches_handler(own));
  own = plain_pool();
  own.location.id = 1;
  EXPECT_FALSE(reaches_handler(own)) << "another device's";
  own = plain_pool();
  own.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  EXPECT_FALSE(reaches_handler(own));
  own = plain_pool();
  own.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_FALSE(reaches_handler(own)) << "other processes may come to use it";
  own = plain_pool();
  own.maxSize = 1 << 20;
  EXPECT_FALSE(reaches_handler(own)) << "it ends somewhere";
}

// The driver's pools stay empty: what the program asks them for is what it got in their place.
TEST_F(Hooks, APoolTellsWhatIsServedInItsPlace) {
  const auto pool = reinterpret_cast<CUmemoryPool>(0xfeed), other = reinterpret_cast<CUmemoryPool>(0xbeef);
  const auto tell = [](CUmemoryPool of, CUmemPool_attribute attribute) {
    cuuint64_t bytes = 7;  // the driver's answer
    EXPECT_EQ(cuMemPoolGetAttribute(of, attribute, &bytes), CUDA_SUCCESS);
    return bytes;
  };
  insert_pool(pool, plain_pool());
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address, 1000, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 7u) << "the driver made it";
  EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  watch(kWatching | kManaging);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address, 1000, pool, nullptr), CUDA_SUCCESS);
  for (const auto attribute : {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH,
                               CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH}) {
    EXPECT_EQ(tell(pool, attribute), 7u + 1024);
    EXPECT_EQ(tell(other, attribute), 7u);
  }
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 7u);
  EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 7u);
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 7u + 1024);
  cuuint64_t zero = 0;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero), CUDA_SUCCESS);
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 7u);
  EXPECT_EQ(tell(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 7u + 1024);
}

TEST_F(Hooks, AllocationsGetIdsAndCommandsNameThem) {
  const CUdeviceptr a = allocate(4096), b = allocate(4096);
  ASSERT_EQ(handler().allocations.size(), 2u);
  EXPECT_NE(handler().allocations[0].allocation, handler().allocations[1].allocation);
  EXPECT_EQ(handler().allocations[0].context, reinterpret_cast<CUcontext>(0xc0de));
  EXPECT_EQ(cuMemcpyDtoDAsync(a + 16, b + 32, 100, reinterpret_cast<CUstream>(0x5150)), CUDA_SUCCESS);
  ASSERT_EQ(handler().commands.size(), 1u);
  const SeenCommand& copy = last();
  EXPECT_EQ(copy.command.op, trace::OpKind::copy_device_to_device);
  EXPECT_EQ(copy.command.stream, reinterpret_cast<CUstream>(0x5150));
  EXPECT_GE(copy.command.stream_id, 2u);
  EXPECT_EQ(copy.command.size, 100u);
  ASSERT_EQ(copy.accesses.size(), 2u);
  EXPECT_EQ(copy.accesses[0].allocation, handler().allocations[1].allocation);
  EXPECT_EQ(copy.accesses[0].offset, 32u);
  EXPECT_EQ(copy.accesses[0].size, 100u);
  EXPECT_EQ(copy.accesses[0].mode, trace::kAccessRead);
  EXPECT_EQ(copy.accesses[1].allocation, handler().allocations[0].allocation);
  EXPECT_EQ(copy.accesses[1].mode, trace::kAccessWrite);
  cuMemFree(a);
  cuMemFree(b);
  EXPECT_EQ(handler().frees.size(), 2u);
}

TEST_F(Hooks, AWholeWriteHasItsExactSize) {
  const CUdeviceptr a = allocate(4096);
  cuMemsetD32(a, 7, 1024);
  EXPECT_EQ(last().accesses[0].size, 4096u);
  cuMemFree(a);
}

TEST_F(Hooks, AFailedAllocationLeavesNothing) {
  handler().answer = CUDA_ERROR_OUT_OF_MEMORY;
  const LiveMemory before = live_device_memory();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(live_device_memory().count, before.count);
}

// Forwarded as one of no context, it would be outside of the budget and count against it.
TEST_F(Hooks, AnAllocationWhoseContextCannotBeHadIsRefused) {
  const size_t before = handler().allocations.size();
  scripted().answer("cuCtxGetCurrent", CUDA_ERROR_DEINITIALIZED);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(handler().allocations.size(), before);
}

TEST_F(Hooks, ARefusedFreeKeepsTheAllocation) {
  const CUdeviceptr a = allocate(64);
  handler().answer = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_CONTEXT);
  Allocation found;
  EXPECT_TRUE(find_allocation(a, &found));
  handler().answer = CUDA_SUCCESS;
  EXPECT_EQ(cuMemFree(a), CUDA_SUCCESS);
  EXPECT_FALSE(find_allocation(a, &found));
}

TEST_F(Hooks, FreesThatAreNotOursGoToTheDriver) {
  EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
  EXPECT_TRUE(handler().ordered.empty());
  EXPECT_EQ(cuMemFree(0x1234), CUDA_SUCCESS);
  EXPECT_EQ(handler().ordered.size(), 1u);
  EXPECT_TRUE(handler().frees.empty());
  EXPECT_EQ(scripted().call("cuMemFree_v2").count, 2u);
}

TEST_F(Hooks, StreamZeroIsNamed) {
  const CUdeviceptr a = allocate(64);
  cuMemsetD32Async(a, 1, 4, nullptr);
  EXPECT_EQ(last().command.stream, CU_STREAM_LEGACY);
  EXPECT_EQ(last().command.stream_id, 0u);
  cuMemsetD32Async_ptsz(a, 1, 4, nullptr);
  EXPECT_EQ(last().command.stream, CU_STREAM_PER_THREAD);
  EXPECT_EQ(last().command.stream_id, 1u);
  cuStreamSynchronize(nullptr);
  cuStreamSynchronize_ptsz(nullptr);
  ASSERT_EQ(handler().streams.size(), 2u);
  EXPECT_EQ(handler().streams[0], CU_STREAM_LEGACY);
  EXPECT_EQ(handler().streams[1], CU_STREAM_PER_THREAD);
  cuMemFree(a);
}

// The driver's own per-thread stream is that of the thread which calls the driver, and that is often one of ours.
TEST_F(Hooks, OpaqueCallsGoToTheStreamThatStandsForThePerThreadOne) {
  handler().per_thread = reinterpret_cast<CUstream>(0x9100);
  const auto stream_of_the_call = [] { return scripted().call("cuStreamWaitValue32_v2_ptsz").integers[0]; };
  EXPECT_EQ(cuStreamWaitValue32_v2_ptsz(nullptr, 0x1000, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(stream_of_the_call(), 0x9100u);
  EXPECT_EQ(cuStreamWaitValue32_v2_ptsz(reinterpret_cast<CUstream>(0x9200), 0x1000, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(stream_of_the_call(), 0x9200u);
  EXPECT_EQ(handler().per_thread_calls, 0);
  EXPECT_EQ(cuMemcpyAtoD_v2_ptds(0x1000, nullptr, 0, 16), CUDA_SUCCESS);
  EXPECT_EQ(handler().per_thread_calls, 1) << "it names no stream: the driver's own waits for what stands for it";
  EXPECT_EQ(cuMemcpyAtoD_v2(0x1000, nullptr, 0, 16), CUDA_SUCCESS);
  EXPECT_EQ(handler().per_thread_calls, 1) << "the legacy stream is the same for all threads";
}

TEST_F(Hooks, HostCopiesSayWhereTheHostSideIs) {
  const CUdeviceptr a = allocate(4096);
  char bytes[64] = {};
  cuMemcpyHtoD(a, bytes, sizeof bytes);
  {
    const Command& command = last().command;
    EXPECT_EQ(command.op, trace::OpKind::copy_host_to_device);
    EXPECT_EQ(command.flags, trace::kOpSynchronous);
    EXPECT_TRUE(command.host_pageable);
    EXPECT_EQ(command.host_source, bytes);
    ASSERT_NE(command.host_source_offset, 0u);
    const void* found = nullptr;
    std::memcpy(&found, last().payload.data() + command.host_source_offset, sizeof found);
    EXPECT_EQ(found, bytes);
  }
  EXPECT_EQ(scripted().call("cuMemcpyHtoD_v2").count, 1u);
  cuMemcpyHtoD_v2_ptds(a, bytes, sizeof bytes);
  EXPECT_EQ(scripted().call("cuMemcpyHtoD_v2_ptds").count, 1u);
  cuMemcpyDtoHAsync(bytes, a, sizeof bytes, nullptr);
  EXPECT_EQ(last().command.op, trace::OpKind::copy_device_to_host);
  EXPECT_EQ(last().command.flags, trace::kOpHostVisible);
  EXPECT_EQ(last().command.host_destination, bytes);
  EXPECT_EQ(last().command.host_source, nullptr);
  cuMemcpyAsync(a, reinterpret_cast<CUdeviceptr>(bytes), sizeof bytes, nullptr);
  EXPECT_EQ(last().command.op, trace::OpKind::copy_host_to_device);
  cuMemFree(a);
}

// The bytes may be staged elsewhere: the payload is position independent and the source can be redirected.
TEST_F(Hooks, ACopiedPayloadIssuesFromTheStagedSource) {
  const CUdeviceptr a = allocate(4096);
  handler().issue = false;
  char bytes[64] = {};
  char staged[64] = {};
  cuMemcpyHtoDAsync(a, bytes, sizeof bytes, nullptr);
  SeenCommand seen = last();
  EXPECT_EQ(scripted().call("cuMemcpyHtoDAsync_v2").count, 0u);
  const void* elsewhere = staged;
  std::memcpy(seen.payload.data() + seen.command.host_source_offset, &elsewhere, sizeof elsewhere);
  EXPECT_EQ(seen.command.issue(seen.payload.data(), reinterpret_cast<CUstream>(0x99)), CUDA_SUCCESS);
  const ScriptedCall call = scripted().call("cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(call.integers[1], reinterpret_cast<uint64_t>(staged));
  EXPECT_EQ(call.integers[3], 0x99u);
  cuMemFree(a);
}

TEST_F(Hooks, PinnedMemoryIsKnown) {
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  const CUdeviceptr a = allocate(4096);
  cuMemcpyDtoHAsync(pinned, a, 64, nullptr);
  EXPECT_FALSE(last().command.host_pageable);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().accesses[1].mode, trace::kAccessWrite);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(handler().ordered.back(), "cuMemFreeHost");
  cuMemFree(a);
}

TEST_F(Hooks, ShapedCopiesSpanTheirRows) {
  const CUdeviceptr a = allocate(1 << 16), b = allocate(1 << 16);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.srcPitch = 1024;
  copy.srcXInBytes = 8;
  copy.srcY = 2;
  copy.dstDevice = b;
  copy.dstPitch = 256;
  copy.WidthInBytes = 256;
  copy.Height = 4;
  EXPECT_EQ(cuMemcpy2DAsync(&copy, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(last().accesses.size(), 2u);
  EXPECT_EQ(last().command.size, 1024u);
  EXPECT_EQ(last().accesses[0].offset, 2 * 1024u + 8);
  EXPECT_EQ(last().accesses[0].size, 3 * 1024u + 256);
  EXPECT_EQ(last().accesses[1].size, 1024u);
  EXPECT_EQ(last().accesses[1].mode, trace::kAccessWrite);  // without gaps
  copy.dstPitch = 512;
  cuMemcpy2DAsync(&copy, nullptr);
  EXPECT_EQ(last().accesses[1].mode, trace::kAccessWrite | trace::kAccessRead);  // the gaps stay
  cuMemFree(a);
  cuMemFree(b);
}

TEST_F(Hooks, BatchesBecomeTheirCopies) {
  const CUdeviceptr a = allocate(4096);
  CUdeviceptr to[] = {a, a + 64};
  CUdeviceptr from[] = {a + 512, a + 1024};
  size_t bytes[] = {32, 16};
  size_t index = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  const auto stream = reinterpret_cast<CUstream>(0x7000);
  EXPECT_EQ(cuMemcpyBatchAsync(to, from, bytes, 2, &attributes, &index, 1, stream), CUDA_SUCCESS);
  ASSERT_EQ(handler().commands.size(), 2u);
  EXPECT_EQ(handler().commands[0].command.size, 32u);
  EXPECT_EQ(last().command.size, 16u);
  EXPECT_EQ(handler().streams.size(), 1u);  // the source may change when the call returns
  cuMemFree(a);
}

TEST_F(Hooks, CapturedWorkIsLeftAlone) {
  const CUdeviceptr a = allocate(4096);
  const auto stream = reinterpret_cast<CUstream>(0x8000);
  EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(handler().captures_begun, 1);
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_ACTIVE);
  cuMemsetD32Async(a, 1, 4, stream);
  CUdeviceptr in_graph = 0;
  cuMemAllocAsync(&in_graph, 64, stream);
  EXPECT_TRUE(handler().commands.empty());
  EXPECT_EQ(scripted().call("cuMemsetD32Async").count, 1u);
  Allocation found;
  EXPECT_FALSE(find_allocation(in_graph, &found));
  CUgraph graph = nullptr;
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(handler().captures_ended, 1);
  cuMemsetD32Async(a, 1, 4, stream);
  EXPECT_EQ(handler().commands.size(), 1u);
  cuMemFree(a);
}

// Only the stream that a call works on says whether the call is captured.
TEST_F(Hooks, WhileACaptureIsOpenOtherStreamsKeepTheirOrder) {
  const auto captured = reinterpret_cast<CUstream>(0x8000);
  const auto other = reinterpret_cast<CUstream>(0x8100);
  const auto event = reinterpret_cast<CUevent>(0x9000);
  scripted().answer("cuStreamBeginCapture_v2", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(handler().captures_ended, 1) << "it could not begin";
  scripted().answer("cuStreamBeginCapture_v2", CUDA_SUCCESS);
  EXPECT_EQ(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  handler().ordered.clear();
  EXPECT_EQ(cuEventRecord(event, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(handler().streams, (std::vector<CUstream>{other, other})) << "record and wait go the same way";
  EXPECT_EQ(cuStreamWaitValue32(other, 0x1000, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(handler().ordered, (std::vector<std::string>{"cuStreamWaitValue32_v2", "cuModuleUnload"}));
  // A stream that waits for what a captured one has recorded joins its capture.
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuEventRecord(event, captured), CUDA_SUCCESS);
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(handler().captures_joined, 1);
  EXPECT_EQ(handler().streams.size(), 2u);
  EXPECT_EQ(cuEventRecord(event, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(handler().captures_joined, 1) << "its last record is not of the capture any more";
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
}

TEST_F(Hooks, TheDriverCallingBackIsForwarded) {
  const CUdeviceptr a = allocate(4096);
  static CUdeviceptr nested;
  nested = a;
  scripted().reenter("cuMemsetD8Async", [] { cuMemsetD32(nested, 1, 4); });
  cuMemsetD8Async(a, 1, 4, nullptr);
  EXPECT_EQ(handler().commands.size(), 1u);
  EXPECT_EQ(scripted().call("cuMemsetD32_v2").count, 1u);
  EXPECT_FALSE(detail::inside_hook);
  cuMemFree(a);
}

TEST_F(Hooks, NothingIsUnderstoodUnlessSomebodyWatches) {
  stop_watching();
  CUdeviceptr a = 0;
  EXPECT_EQ(cuMemAlloc(&a, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(a, 1, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(handler().commands.empty());
  EXPECT_EQ(scripted().call("cuStreamSynchronize").integers[0], reinterpret_cast<uint64_t>(CU_STREAM_LEGACY));
  Allocation found;
  EXPECT_FALSE(find_allocation(a, &found));
}

TEST_F(Hooks, ManagedMemoryIsDescribedByUs) {
  const CUdeviceptr a = allocate(5000);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, a + 10), CUDA_SUCCESS);
  EXPECT_EQ(scripted().call("cuMemGetAddressRange_v2").count, 1u);  // not managing: the driver's answer
  watch(kWatching | kManaging);
  EXPECT_EQ(cuMemGetAddressRange(&base, nullptr, a + 10), CUDA_SUCCESS);
  EXPECT_EQ(base, a);
  EXPECT_EQ(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 10), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 5000u);
  unsigned type = 0;
  void* host = &type;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* data[] = {&type, &host};
  EXPECT_EQ(cuPointerGetAttributes(2, wanted, data, a), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(host, nullptr);
  EXPECT_EQ(cuMemGetInfo(&bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 111u);
  EXPECT_EQ(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 333u);
  testing::internal::CaptureStderr();
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, a), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  CUmemGenericAllocationHandle chunk;
  EXPECT_EQ(cuMemRetainAllocationHandle(&chunk, reinterpret_cast<void*>(a)), CUDA_ERROR_INVALID_VALUE);
  cuMemFree(a);
}

TEST_F(Hooks, PitchedMemoryHasOurPitchWhileManaging) {
  watch(kWatching | kManaging);
  CUdeviceptr a = 0;
  size_t pitch = 0;
  EXPECT_EQ(cuMemAllocPitch(&a, &pitch, 1000, 10, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  EXPECT_EQ(handler().allocations.back().size, 10240u);
  EXPECT_EQ(scripted().call("cuMemAllocPitch_v2").count, 0u);
  EXPECT_EQ(cuMemFreeAsync(a, nullptr), CUDA_ERROR_INVALID_VALUE);
  cuMemFree(a);
}

TEST_F(Hooks, WhatTheProgramMapsItselfIsCounted) {
  CUmemAllocationProp properties{};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  cuMemCreate(&handle, 1 << 21, &properties, 0);
  ASSERT_EQ(handler().beside.size(), 1u);
  EXPECT_EQ(handler().beside[0].kind, BesideKind::physical);
  EXPECT_EQ(handler().beside[0].bytes, uint64_t{1} << 21);
  EXPECT_EQ(handler().beside_ended, 1);
  cuMemRelease(handle);
  ASSERT_EQ(handler().beside.size(), 2u);
  EXPECT_EQ(handler().beside[1].bytes, 0u) << "it gives back";
  handler().beside_answer = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(cuMemCreate(&handle, 1 << 21, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(handler().beside_ended, 2) << "it was not made";
}

TEST_F(Hooks, OpaqueCallsDrain) {
  cuStreamWaitValue32(nullptr, 0x10, 1, 0);
  ASSERT_EQ(handler().ordered.size(), 1u);
  EXPECT_EQ(handler().ordered[0], "cuStreamWaitValue32_v2");
  EXPECT_TRUE(handler().ordered_all_resident[0]);
}

TEST_F(Hooks, AWordThatAStreamWritesIsAnAccess) {
  CUdeviceptr a = 0;
  cuMemAlloc(&a, 4096);
  const auto stream = reinterpret_cast<CUstream>(0x77);
  EXPECT_EQ(cuStreamWriteValue64(stream, a + 64, 7, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_SUCCESS);
  ASSERT_EQ(handler().commands.size(), 1u);
  const SeenCommand& seen = handler().commands[0];
  EXPECT_EQ(seen.command.stream, stream);
  EXPECT_EQ(seen.command.flags & trace::kOpOpaque, 0);
  ASSERT_EQ(seen.accesses.size(), 1u);
  EXPECT_EQ(seen.accesses[0].offset, 64u);
  EXPECT_EQ(seen.accesses[0].size, 8u);
  EXPECT_EQ(seen.accesses[0].mode, static_cast<uint32_t>(trace::kAccessWrite));
  const ScriptedCall call = scripted().call("cuStreamWriteValue64_v2");
  EXPECT_EQ(call.count, 1u);
  EXPECT_EQ(call.integers[1], a + 64);
  EXPECT_EQ(call.integers[2], 7u);
  EXPECT_TRUE(handler().ordered.empty());
}

TEST_F(Hooks, AWordOfMemoryThatNobodyKnowsIsOpaque) {
  cuStreamWriteValue32(nullptr, 0x10, 1, 0);
  ASSERT_EQ(handler().commands.size(), 1u);
  EXPECT_NE(handler().commands[0].command.flags & trace::kOpOpaque, 0);
}

TEST_F(Hooks, AnErrorBeforeAForwardedCallIsTheProgramsAnswer) {
  void* host = nullptr;
  cuMemAllocHost(&host, 4096);
  handler().ordered_answer = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(cuMemFreeHost(host), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(scripted().call("cuMemFreeHost").count, 0u);
  handler().ordered_answer = CUDA_SUCCESS;
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
}

TEST_F(Hooks, StreamOrderedMemorySaysSo) {
  CUdeviceptr a = 0;
  const auto stream = reinterpret_cast<CUstream>(0xa000);
  EXPECT_EQ(cuMemAllocAsync(&a, 512, stream), CUDA_SUCCESS);
  EXPECT_EQ(handler().allocations.back().origin, trace::Origin::async);
  EXPECT_EQ(handler().allocations.back().stream, stream);
  EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
  ASSERT_EQ(handler().frees.size(), 1u);
  EXPECT_TRUE(handler().frees[0].stream_ordered);
  EXPECT_EQ(handler().frees[0].stream, stream);
  EXPECT_EQ(handler().frees[0].allocation, handler().allocations[0].allocation);
  EXPECT_EQ(handler().frees[0].size, 512u);
  cuMemAllocAsync(&a, 512, stream);
  cuMemFree(a);
  EXPECT_FALSE(handler().frees.back().stream_ordered);
  EXPECT_GT(handler().frees.back().sequence, handler().allocations.back().sequence);
}

TEST_F(Hooks, AStreamHandleUsedAgainIsAnotherStream) {
  const CUdeviceptr a = allocate(64);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  cuMemsetD32Async(a, 1, 4, stream);
  const uint32_t first = last().command.stream_id;
  cuMemsetD32Async(a, 1, 4, stream);
  EXPECT_EQ(last().command.stream_id, first);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  cuMemsetD32Async(a, 1, 4, stream);
  EXPECT_NE(last().command.stream_id, first);
  cuMemFree(a);
}

TEST_F(Hooks, GraphLaunchesAreOpaqueUnlessTheirNodesAreKnown) {
  handler().issue = false;
  EXPECT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(0x1), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(last().command.op, trace::OpKind::graph_launch);
  EXPECT_NE(last().command.flags & trace::kOpOpaque, 0);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, reinterpret_cast<CUgraph>(0x2), 0), CUDA_SUCCESS);
  cuGraphLaunch(executable, nullptr);
  EXPECT_EQ(last().command.flags & trace::kOpOpaque, 0);
  CUDA_KERNEL_NODE_PARAMS parameters{};
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(executable, nullptr, &parameters), CUDA_SUCCESS);
  EXPECT_EQ(handler().ordered.back(), "cuGraphExecKernelNodeSetParams_v2");
  cuGraphLaunch(executable, nullptr);
  EXPECT_NE(last().command.flags & trace::kOpOpaque, 0);
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(handler().ordered.back(), "cuGraphExecDestroy");
}

// Memory nodes and host functions touch no memory of ours; events and conditions are more than memory tells.
TEST_F(Hooks, AGraphIsOpaqueWhereANodeSaysTooLittle) {
  handler().issue = false;
  CUgraphExec executable = nullptr;
  const auto flags_with = [&](CUgraphNodeType type) {
    scripted().node(static_cast<int>(type), 0);
    EXPECT_EQ(cuGraphInstantiate(&executable, reinterpret_cast<CUgraph>(0x2), 0), CUDA_SUCCESS);
    cuGraphLaunch(executable, nullptr);
    return last().command.flags;
  };
  EXPECT_EQ(flags_with(CU_GRAPH_NODE_TYPE_MEM_ALLOC) & trace::kOpOpaque, 0);
  EXPECT_EQ(flags_with(CU_GRAPH_NODE_TYPE_MEM_FREE) & trace::kOpOpaque, 0);
  EXPECT_EQ(flags_with(CU_GRAPH_NODE_TYPE_HOST) & (trace::kOpOpaque | trace::kOpHostVisible), trace::kOpHostVisible);
  EXPECT_NE(flags_with(CU_GRAPH_NODE_TYPE_EVENT_RECORD) & trace::kOpOpaque, 0);
  EXPECT_NE(flags_with(CU_GRAPH_NODE_TYPE_CONDITIONAL) & trace::kOpOpaque, 0);
  EXPECT_NE(flags_with(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) & trace::kOpOpaque, 0);
}

// What they allocate is the driver's, and changes when there is one more or one less of them.
TEST_F(Hooks, GraphsThatAllocateAreTold) {
  CUgraphExec executable = nullptr;
  scripted().node(CU_GRAPH_NODE_TYPE_MEM_FREE, 0);
  ASSERT_EQ(cuGraphInstantiate(&executable, reinterpret_cast<CUgraph>(0x2), 0), CUDA_SUCCESS);
  EXPECT_EQ(handler().graph_allocations, std::vector<uint32_t>());
  scripted().node(CU_GRAPH_NODE_TYPE_MEM_ALLOC, 0);
  ASSERT_EQ(cuGraphInstantiate(&executable, reinterpret_cast<CUgraph>(0x2), 0), CUDA_SUCCESS);
  EXPECT_EQ(handler().graph_allocations, std::vector<uint32_t>{1});
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(handler().graph_allocations, (std::vector<uint32_t>{1, 0}));
}

// It names addresses: when the allocation that was there is gone, others may lie where it did.
TEST_F(Hooks, AGraphTouchesWhatWasThereOrElseAnything) {
  const CUdeviceptr a = allocate(4096);
  handler().issue = false;
  scripted().node(CU_GRAPH_NODE_TYPE_MEMSET, a + 100);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, reinterpret_cast<CUgraph>(0x2), 0), CUDA_SUCCESS);
  cuGraphLaunch(executable, nullptr);
  EXPECT_EQ(last().command.flags & trace::kOpOpaque, 0);
  ASSERT_EQ(last().accesses.size(), 1u);
  EXPECT_EQ(last().accesses[0].address, a);
  EXPECT_NE(last().accesses[0].mode & trace::kAccessWrite, 0u);
  cuMemFree(a);
  cuGraphLaunch(executable, nullptr);
  EXPECT_NE(last().command.flags & trace::kOpOpaque, 0);
}

TEST_F(Hooks, HostFunctionsAreCommands) {
  handler().issue = false;
  EXPECT_EQ(cuLaunchHostFunc(
                nullptr, [](void*) {}, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(last().command.op, trace::OpKind::host_function);
}

}  // namespace
}  // namespace reprise
