// The counting shim's hooks on memory: which calls a program's allocator makes, and which addresses are live, so that
// pointers in launches are known as such. All of them pass the call on first.
#define __CUDA_API_VERSION_INTERNAL  // cuda.h then declares every version under its own name
#include <cuda.h>

#include "tools/lab/probe/counting_shim/counts.h"
#include "tools/lab/probe/counting_shim/hook.h"

namespace {

using namespace reprise::count;

CUresult noted(CUresult result, const char* entry) {
  if (result == CUDA_SUCCESS) count_memory_call(entry);
  return result;
}

CUresult allocated(CUresult result, const char* entry, const CUdeviceptr* address, size_t bytes) {
  if (result == CUDA_SUCCESS && address) count_allocation(*address, bytes);
  return noted(result, entry);
}

}  // namespace

EXPORTED CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  REAL(cuMemAlloc_v2);
  return allocated(real_function(address, bytes), "cuMemAlloc", address, bytes);
}
EXPORTED CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  REAL(cuMemFree_v2);
  count_free(address);
  return noted(real_function(address), "cuMemFree");
}

#define ALLOC_ASYNC(name)                                                                       \
  EXPORTED CUresult CUDAAPI name(CUdeviceptr* address, size_t bytes, CUstream stream) {         \
    REAL(name);                                                                                 \
    return allocated(real_function(address, bytes, stream), "cuMemAllocAsync", address, bytes); \
  }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)

#define ALLOC_FROM_POOL(name)                                                                                 \
  EXPORTED CUresult CUDAAPI name(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {    \
    REAL(name);                                                                                               \
    return allocated(real_function(address, bytes, pool, stream), "cuMemAllocFromPoolAsync", address, bytes); \
  }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

#define FREE_ASYNC(name)                                                 \
  EXPORTED CUresult CUDAAPI name(CUdeviceptr address, CUstream stream) { \
    REAL(name);                                                          \
    count_free(address);                                                 \
    return noted(real_function(address, stream), "cuMemFreeAsync");      \
  }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

EXPORTED CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                                   CUmemGenericAllocationHandle handle, unsigned long long flags) {
  REAL(cuMemMap);
  return allocated(real_function(address, bytes, offset, handle, flags), "cuMemMap", &address, bytes);
}
EXPORTED CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
  REAL(cuMemUnmap);
  count_free(address, bytes);
  return noted(real_function(address, bytes), "cuMemUnmap");
}

// Calls that are only counted: (name, parameters, arguments).
#define COUNTED_CALL(name, parameters, arguments) \
  EXPORTED CUresult CUDAAPI name parameters {     \
    REAL(name);                                   \
    return noted(real_function arguments, #name); \
  }
COUNTED_CALL(cuMemCreate,
             (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp* properties,
              unsigned long long flags),
             (handle, bytes, properties, flags))
COUNTED_CALL(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
COUNTED_CALL(cuMemSetAccess, (CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count),
             (address, bytes, access, count))
COUNTED_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
COUNTED_CALL(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
COUNTED_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), (device, pool))
COUNTED_CALL(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps* properties), (pool, properties))
COUNTED_CALL(cuMemPoolDestroy, (CUmemoryPool pool), (pool))
COUNTED_CALL(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes), (pool, bytes))
COUNTED_CALL(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value),
             (pool, attribute, value))
COUNTED_CALL(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value),
             (pool, attribute, value))
COUNTED_CALL(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc* access, size_t count),
             (pool, access, count))
