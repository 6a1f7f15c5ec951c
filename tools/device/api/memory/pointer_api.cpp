// What a pointer is: cuPointerGetAttribute and its kin, and the hints that managed memory takes.
#include "tools/device/engines/device.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/pool.h"
#include "tools/device/memory/vmm.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/operations.h"

using namespace reprise::sim;

namespace {

template <typename T>
CUresult put(void* to, T value) {
  *static_cast<T*>(to) = value;
  return CUDA_SUCCESS;
}

bool is_pinned(const Range& range) { return range.kind == RangeKind::host || range.kind == RangeKind::registered; }

bool is_managed(const Range& range) {
  return range.kind == RangeKind::managed || (range.kind == RangeKind::pool && range.pool->managed());
}

CUcontext context_of(const Range& range) { return range.context == nullptr ? nullptr : range.context->handle; }

int device_of(const Range& range) {
  if (range.device != nullptr) return range.device->ordinal;
  return range.context == nullptr ? 0 : range.context->device.ordinal;
}

CUresult read(const Range& range, uint64_t pointer, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      SIM_REQUIRE(range.context != nullptr, CUDA_ERROR_INVALID_VALUE);
      return put(data, context_of(range));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(data, range.is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      SIM_REQUIRE(range.is_host() || is_managed(range), CUDA_ERROR_INVALID_VALUE);
      return put(data, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(data, range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(data, is_managed(range) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, device_of(range));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(data, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(data, range.kind != RangeKind::mapping || range.readers != 0 ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: {
      const auto types =
          range.chunk == nullptr ? CU_MEM_HANDLE_TYPE_NONE : range.chunk->properties.requestedHandleTypes;
      return put<unsigned long long>(data, types);
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: {
      const bool writable = range.kind != RangeKind::mapping || range.writers != 0;
      const bool readable = range.kind != RangeKind::mapping || range.readers != 0;
      return put(data, writable   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                       : readable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                  : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<CUmemoryPool>(data, range.pool == nullptr ? nullptr : range.pool->handle);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(data, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, range.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(data, range.buffer_id);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// For memory that the driver does not know: 0 in the attribute's size, some with a value of their own.
void read_unknown(CUpointer_attribute attribute, uint64_t pointer, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put<uint64_t>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put<uint64_t>(data, pointer);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(data, -2);
      break;
    default:
      put<unsigned>(data, 0);
      break;
  }
}

bool is_attribute(CUpointer_attribute attribute) {
  return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

// Managed memory never moves here: the hints are checked, and a prefetch keeps its place in the stream.
CUresult check_managed(CUdeviceptr pointer, size_t bytes, const CUmemLocation& location) {
  const auto range = memory_map().find(pointer);
  SIM_REQUIRE(bytes != 0 && range && range->kind == RangeKind::managed, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(bytes <= range->end() - pointer, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(location.type != CU_MEM_LOCATION_TYPE_DEVICE || find_device(location.id) != nullptr,
              CUDA_ERROR_INVALID_DEVICE);
  return CUDA_SUCCESS;
}

CUmemLocation location_of(CUdevice device) {
  CUmemLocation location = {};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

}  // namespace

extern "C" {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  SIM_ENTER();
  SIM_REQUIRE(data != nullptr && is_attribute(attribute), CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(ptr);
  SIM_REQUIRE(range && !range->freed, CUDA_ERROR_INVALID_VALUE);
  return read(*range, ptr, attribute, data);
}

// Unknown pointers are no error here.
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  SIM_ENTER();
  SIM_REQUIRE(numAttributes != 0 && attributes != nullptr && data != nullptr, CUDA_ERROR_INVALID_VALUE);
  for (unsigned i = 0; i < numAttributes; ++i) {
    SIM_REQUIRE(data[i] != nullptr && is_attribute(attributes[i]), CUDA_ERROR_INVALID_VALUE);
  }
  const auto range = memory_map().find(ptr);
  const bool known = range && !range->freed;
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (!known || read(*range, ptr, attributes[i], data[i]) != CUDA_SUCCESS) {
      read_unknown(attributes[i], known && !is_pinned(*range) ? 0 : ptr, data[i]);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  SIM_ENTER();
  SIM_REQUIRE(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(ptr);
  SIM_REQUIRE(range && range->device != nullptr && range->kind != RangeKind::managed, CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY,
              CUDA_ERROR_INVALID_VALUE);
  return check_managed(devPtr, count, location);
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_managed(devPtr, count, location));
  return dispatch(*context, hStream, empty_operation());
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  return cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

}  // extern "C"
