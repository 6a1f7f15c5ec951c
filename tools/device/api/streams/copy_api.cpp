// Linear copies: cuMemcpy and its kin.
#include "tools/device/engines/device.h"
#include "tools/device/memory/copy.h"
#include "tools/device/streams/between.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

CUresult copy(Context& context, CUstream stream, uint64_t destination, Side destination_side, uint64_t source,
              Side source_side, size_t bytes, CopyMode mode) {
  CopyShape shape;
  shape.destination = destination;
  shape.source = source;
  shape.width = bytes;
  CopyPlan plan;
  SIM_TRY(plan_copy(context, shape, destination_side, source_side, &plan));
  return submit_copy(context, stream, plan, mode);
}

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, nullptr, dst, Side::any, src, Side::any, ByteCount, CopyMode::synchronous);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, hStream, dst, Side::any, src, Side::any, ByteCount, CopyMode::asynchronous);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, nullptr, dstDevice, Side::device, address(srcHost), Side::any, ByteCount,
              CopyMode::synchronous);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, hStream, dstDevice, Side::device, address(srcHost), Side::any, ByteCount,
              CopyMode::asynchronous);
}

CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, nullptr, address(dstHost), Side::any, srcDevice, Side::device, ByteCount,
              CopyMode::synchronous);
}

CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, hStream, address(dstHost), Side::any, srcDevice, Side::device, ByteCount,
              CopyMode::asynchronous);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, nullptr, dstDevice, Side::device, srcDevice, Side::device, ByteCount, CopyMode::synchronous);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return copy(*context, hStream, dstDevice, Side::device, srcDevice, Side::device, ByteCount, CopyMode::asynchronous);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount) {
  SIM_ENTER_CONTEXT(context);
  return submit_between(*context, dstContext, srcContext, [&] {
    return copy(*context, nullptr, dstDevice, Side::device, srcDevice, Side::device, ByteCount, CopyMode::synchronous);
  });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(find_context(dstContext) != nullptr && find_context(srcContext) != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return copy(*context, hStream, dstDevice, Side::device, srcDevice, Side::device, ByteCount, CopyMode::asynchronous);
}

// A batch runs in the order given, which its contract allows.
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(dsts != nullptr && srcs != nullptr && sizes != nullptr && count != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(attrs != nullptr && attrsIdxs != nullptr && numAttrs != 0 && numAttrs <= count && attrsIdxs[0] == 0,
              CUDA_ERROR_INVALID_VALUE);
  // The default streams are not allowed here.
  SIM_REQUIRE(hStream != nullptr && hStream != CU_STREAM_LEGACY, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) SIM_REQUIRE(sizes[i] != 0, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    SIM_TRY(copy(*context, hStream, dsts[i], Side::any, srcs[i], Side::any, sizes[i], CopyMode::asynchronous));
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, size_t* failIdx,
                            CUstream hStream) {
  if (failIdx != nullptr) *failIdx = SIZE_MAX;
  return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}

}  // extern "C"
