// Copies of rectangles and boxes: cuMemcpy2D, cuMemcpy3D and their kin. CUDA arrays are not simulated.
#include "tools/device/memory/box_copy.h"
#include "tools/device/streams/between.h"
#include "tools/device/streams/enter.h"

namespace reprise::sim {
namespace {

struct End {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  uint64_t pitch;
  uint64_t height;
  uint64_t x, y, z;
};

// Address, side and strides of one end of a box.
CUresult resolve(const End& end, uint64_t width, uint64_t rows, uint64_t planes, uint64_t* address, Side* side,
                 uint64_t* pitch, uint64_t* slice) {
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      *address = reinterpret_cast<uint64_t>(end.host);
      *side = Side::any;
      break;
    case CU_MEMORYTYPE_DEVICE:
      *address = end.device;
      *side = Side::device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      *address = end.device;
      *side = Side::any;
      break;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  SIM_REQUIRE(*address != 0, CUDA_ERROR_INVALID_VALUE);
  *pitch = end.pitch == 0 ? width + end.x : end.pitch;
  SIM_REQUIRE(*pitch >= width + end.x, CUDA_ERROR_INVALID_VALUE);
  const uint64_t height = end.height == 0 ? rows + end.y : end.height;
  SIM_REQUIRE(planes <= 1 || height >= rows + end.y, CUDA_ERROR_INVALID_VALUE);
  *slice = *pitch * height;
  *address += end.z * *slice + end.y * *pitch + end.x;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult plan_box(Context& context, const CUDA_MEMCPY3D& box, CopyPlan* plan) {
  CopyShape shape;
  shape.width = box.WidthInBytes;
  shape.height = box.Height;
  shape.depth = box.Depth;
  plan->shape = shape;
  if (shape.bytes() == 0) return CUDA_SUCCESS;
  Side destination = Side::any;
  Side source = Side::any;
  SIM_TRY(resolve(
      {box.srcMemoryType, box.srcHost, box.srcDevice, box.srcPitch, box.srcHeight, box.srcXInBytes, box.srcY, box.srcZ},
      shape.width, shape.height, shape.depth, &shape.source, &source, &shape.source_pitch, &shape.source_slice));
  SIM_TRY(resolve(
      {box.dstMemoryType, box.dstHost, box.dstDevice, box.dstPitch, box.dstHeight, box.dstXInBytes, box.dstY, box.dstZ},
      shape.width, shape.height, shape.depth, &shape.destination, &destination, &shape.destination_pitch,
      &shape.destination_slice));
  return plan_copy(context, shape, destination, source, plan);
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& rectangle) {
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = rectangle.srcXInBytes;
  box.srcY = rectangle.srcY;
  box.srcMemoryType = rectangle.srcMemoryType;
  box.srcHost = rectangle.srcHost;
  box.srcDevice = rectangle.srcDevice;
  box.srcArray = rectangle.srcArray;
  box.srcPitch = rectangle.srcPitch;
  box.dstXInBytes = rectangle.dstXInBytes;
  box.dstY = rectangle.dstY;
  box.dstMemoryType = rectangle.dstMemoryType;
  box.dstHost = rectangle.dstHost;
  box.dstDevice = rectangle.dstDevice;
  box.dstArray = rectangle.dstArray;
  box.dstPitch = rectangle.dstPitch;
  box.WidthInBytes = rectangle.WidthInBytes;
  box.Height = rectangle.Height;
  box.Depth = 1;
  return box;
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = peer.srcXInBytes;
  box.srcY = peer.srcY;
  box.srcZ = peer.srcZ;
  box.srcMemoryType = peer.srcMemoryType;
  box.srcHost = peer.srcHost;
  box.srcDevice = peer.srcDevice;
  box.srcArray = peer.srcArray;
  box.srcPitch = peer.srcPitch;
  box.srcHeight = peer.srcHeight;
  box.dstXInBytes = peer.dstXInBytes;
  box.dstY = peer.dstY;
  box.dstZ = peer.dstZ;
  box.dstMemoryType = peer.dstMemoryType;
  box.dstHost = peer.dstHost;
  box.dstDevice = peer.dstDevice;
  box.dstArray = peer.dstArray;
  box.dstPitch = peer.dstPitch;
  box.dstHeight = peer.dstHeight;
  box.WidthInBytes = peer.WidthInBytes;
  box.Height = peer.Height;
  box.Depth = peer.Depth;
  return box;
}

namespace {

CUresult submit_box(Context& context, CUstream stream, const CUDA_MEMCPY3D& box, CopyMode mode) {
  CopyPlan plan;
  SIM_TRY(plan_box(context, box, &plan));
  return submit_copy(context, stream, plan, mode);
}

}  // namespace
}  // namespace reprise::sim

using namespace reprise::sim;

extern "C" {

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, nullptr, box_of(*pCopy), CopyMode::synchronous);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, nullptr, box_of(*pCopy), CopyMode::synchronous);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, hStream, box_of(*pCopy), CopyMode::asynchronous);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, nullptr, *pCopy, CopyMode::synchronous);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, hStream, *pCopy, CopyMode::asynchronous);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  const bool to_host = pCopy->dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool from_host = pCopy->srcMemoryType == CU_MEMORYTYPE_HOST;
  return submit_between(*context, to_host ? context->handle : pCopy->dstContext,
                        from_host ? context->handle : pCopy->srcContext,
                        [&] { return submit_box(*context, nullptr, box_of(*pCopy), CopyMode::synchronous); });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pCopy != nullptr, CUDA_ERROR_INVALID_VALUE);
  return submit_box(*context, hStream, box_of(*pCopy), CopyMode::asynchronous);
}

}  // extern "C"
