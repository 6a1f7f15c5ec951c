// cuMemAlloc and its kin, and what there is of memory.
#include "tools/device/engines/device.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/pool.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  SIM_ENTER_CONTEXT(context);
  const Device& device = context->device;
  if (total != nullptr) *total = device.capacity();
  if (free != nullptr) *free = device.free();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(dptr != nullptr && bytesize != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(refuse_in_capture());
  return allocate_device_memory(*context, bytesize, RangeKind::device, nullptr, dptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(dptr != nullptr && pPitch != nullptr && WidthInBytes != 0 && Height != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(refuse_in_capture());
  const uint64_t pitch = round_up(WidthInBytes, kDeviceUnit);
  SIM_REQUIRE(pitch >= WidthInBytes && Height <= UINT64_MAX / pitch, CUDA_ERROR_OUT_OF_MEMORY);
  SIM_TRY(allocate_device_memory(*context, pitch * Height, RangeKind::device, nullptr, dptr));
  *pPitch = pitch;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(dptr != nullptr && bytesize != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(refuse_in_capture());
  return allocate_device_memory(*context, bytesize, RangeKind::managed, nullptr, dptr);
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  SIM_ENTER_CONTEXT(context);
  if (dptr == 0) return CUDA_SUCCESS;
  SIM_TRY(refuse_in_capture());
  const auto range = memory_map().find(dptr);
  SIM_REQUIRE(range && range->base == dptr && range->device != nullptr && !range->freed, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(range->kind == RangeKind::device || range->kind == RangeKind::managed || range->kind == RangeKind::pool ||
                  range->kind == RangeKind::graph,
              CUDA_ERROR_INVALID_VALUE);
  drain_device(*range->device);
  if (range->kind == RangeKind::graph) {
    std::shared_ptr<void> holder;
    return free_graph_memory(*range, &holder);
  }
  if (range->kind == RangeKind::pool) {
    release_pool_block(*range);
  } else {
    free_device_memory(*range);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  SIM_ENTER_CONTEXT(context);
  const auto range = memory_map().find(dptr);
  SIM_REQUIRE(range && !range->freed, CUDA_ERROR_NOT_FOUND);
  if (pbase != nullptr) *pbase = range->base;
  if (psize != nullptr) *psize = range->bytes;
  return CUDA_SUCCESS;
}

}  // extern "C"
