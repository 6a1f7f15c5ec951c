// What the program may ask about memory that Reprise allocated for it: sizes, ranges, attributes. Only while memory is
// managed or defragmented; otherwise the driver answers.
#include <cstring>

#include "preload/base/causes.h"
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/calls/handler.h"
#include "preload/defragment/defragmenter.h"
#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/submit.h"
#include "preload/tracking/allocations.h"
#include "preload/tracking/pool_use.h"

namespace reprise {
namespace {

bool ours() { return managing() || defragmenting(); }

bool managed_memory(CUdeviceptr address, Allocation* allocation) {
  return ours() && find_allocation(address, allocation) && is_device_memory(allocation->origin);
}

template <typename Value>
CUresult answer(void* data, Value value) {
  *static_cast<Value*>(data) = value;
  return CUDA_SUCCESS;
}

// Answers as if cuMemAlloc had made the memory: the driver would tell about the chunk that is mapped there now, or
// none.
CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address, const Allocation& owner) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      CUcontext context = nullptr;
      const CUresult result = driver().cuCtxGetCurrent(&context);
      return result == CUDA_SUCCESS ? answer(data, context) : result;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer(data, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return answer(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return answer(data, static_cast<unsigned long long>(owner.id));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer(data, static_cast<int>(owner.device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return answer(data, static_cast<CUdeviceptr>(owner.address));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return answer(data, static_cast<size_t>(owner.size));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return answer(data, 0u);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return answer(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return answer(data, 0ull);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return answer(data, static_cast<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      auto* pool = reinterpret_cast<CUmemoryPool>(pool_handle(owner.pool));
      if (pool == nullptr && (owner.origin == trace::Origin::async || owner.origin == trace::Origin::pool)) {
        driver().cuDeviceGetMemPool(&pool, static_cast<CUdevice>(owner.device));
      }
      return answer(data, pool);
    }
    default:
      return driver().cuPointerGetAttribute(data, attribute, address);
  }
}

void say_once(bool* said, const char* what) {
  if (__atomic_exchange_n(said, true, __ATOMIC_RELAXED)) return;
  say<Cause::memory_not_shared>(what);
  // The program will ask again for new memory, and memory of the driver's own can do it.
  if (Defragmenter* defragmenter = runtime().defragmenter; defragmenter != nullptr) defragmenter->pass_on(what);
}

bool said_ipc = false;
bool said_range = false;

}  // namespace
}  // namespace reprise

using namespace reprise;

// Either pointer may be null.
REPRISE_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  if (const HookScope scope(defragmenting()); scope)
    return runtime().defragmenter->memory_info(free_bytes, total_bytes);
  const HookScope scope;
  if (!scope || !managing()) return driver().cuMemGetInfo(free_bytes, total_bytes);
  size_t unused_free = 0;
  size_t unused_total = 0;
  return runtime().handler->memory.memory_info(free_bytes != nullptr ? free_bytes : &unused_free,
                                               total_bytes != nullptr ? total_bytes : &unused_total);
}

REPRISE_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const HookScope scope;
  if (!scope || !managing() || bytes == nullptr) return driver().cuDeviceTotalMem(bytes, device);
  return runtime().handler->memory.total_memory(bytes, device);
}

// For the library of NVML's name (preload/nvml): `name` is NVML's of a device.
REPRISE_EXPORT bool reprise_told_memory(const char* name, uint64_t* free_bytes, uint64_t* total_bytes) {
  const HookScope scope;
  int devices = 0;
  if (!scope || !managing() || driver().cuDeviceGetCount(&devices) != CUDA_SUCCESS) return false;
  for (int device = 0; device < devices; ++device) {
    for (const char* kind : nvml::kKinds) {
      nvml::Name known;
      if (!nvml_name(device, kind, &known) || std::strcmp(known.data(), name) != 0) continue;
      return runtime().handler->memory.told_memory(device, free_bytes, total_bytes);
    }
  }
  return false;
}

REPRISE_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const HookScope scope(ours());
  Allocation owner;
  if (!scope || !managed_memory(address, &owner)) return driver().cuMemGetAddressRange(base, bytes, address);
  if (base != nullptr) *base = owner.address;
  if (bytes != nullptr) *bytes = owner.size;
  return CUDA_SUCCESS;
}

REPRISE_EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const HookScope scope(ours());
  Allocation owner;
  if (!scope || data == nullptr || !managed_memory(address, &owner)) {
    return driver().cuPointerGetAttribute(data, attribute, address);
  }
  return pointer_attribute(data, attribute, address, owner);
}

REPRISE_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                               CUdeviceptr address) {
  const HookScope scope(ours());
  Allocation owner;
  if (!scope || attributes == nullptr || data == nullptr || !managed_memory(address, &owner)) {
    return driver().cuPointerGetAttributes(count, attributes, data, address);
  }
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) continue;
    // This call reports what it cannot tell as 0 instead of failing (cuda.h); the host pointer is such a case.
    if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
      *static_cast<void**>(data[i]) = nullptr;
      continue;
    }
    if (const CUresult result = pointer_attribute(data[i], attributes[i], address, owner); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

// Its attributes make the driver look at the memory.
REPRISE_EXPORT CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto set = [=] { return driver().cuPointerSetAttribute(value, attribute, address); };
  const HookScope scope;
  return scope ? with_operands("cuPointerSetAttribute", {address}, set) : set();
}

// The driver's pools, and beside them what is served in their place.
REPRISE_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const HookScope scope;
  const CUresult result = driver().cuMemPoolGetAttribute(pool, attribute, value);
  if (!scope || !managing() || result != CUDA_SUCCESS || value == nullptr) return result;
  const PoolUse use = pool_use(reinterpret_cast<uint64_t>(pool));
  auto* bytes = static_cast<cuuint64_t*>(value);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
    *bytes += use.now;
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    *bytes += use.used_high;
  } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
    *bytes += use.reserved_high;
  }
  return result;
}

REPRISE_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const HookScope scope;
  const CUresult result = driver().cuMemPoolSetAttribute(pool, attribute, value);
  if (!scope || !managing() || result != CUDA_SUCCESS) return result;
  const auto handle = reinterpret_cast<uint64_t>(pool);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) reset_pool_high(handle, PoolHigh::used);
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) reset_pool_high(handle, PoolHigh::reserved);
  return result;
}

// Refused: another process, or another device, would go on using chunks that these bytes have left.
REPRISE_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const HookScope scope(ours());
  Allocation owner;
  if (!scope || !managed_memory(address, &owner)) return driver().cuIpcGetMemHandle(handle, address);
  say_once(&said_ipc, "cuIpcGetMemHandle");
  return CUDA_ERROR_NOT_SUPPORTED;
}

REPRISE_EXPORT CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                                      CUmemRangeHandleType type, unsigned long long flags) {
  const HookScope scope(ours());
  Allocation owner;
  if (!scope || !managed_memory(address, &owner)) {
    return driver().cuMemGetHandleForAddressRange(handle, address, bytes, type, flags);
  }
  say_once(&said_range, "cuMemGetHandleForAddressRange");
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Memory of cuMemAlloc has no such handle, and managed memory shall look like memory of cuMemAlloc.
REPRISE_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const HookScope scope(ours());
  Allocation owner;
  if (scope && managed_memory(reinterpret_cast<CUdeviceptr>(address), &owner)) return CUDA_ERROR_INVALID_VALUE;
  return driver().cuMemRetainAllocationHandle(handle, address);
}
