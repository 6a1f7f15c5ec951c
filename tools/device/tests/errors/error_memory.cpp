// Error cases: memory, virtual memory, copies, memsets, pointers.
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {

std::vector<ErrorCase> memory_cases() {
  static CUdeviceptr address;
  static size_t size;
  static size_t second;
  static void* pointer;
  static unsigned flags;
  static unsigned long long wide;
  static char bytes[kBytes];
  static CUmemGenericAllocationHandle handle;
  static CUmemAllocationProp properties;
  static CUmemAccessDesc access;
  static CUmemoryPool pool;
  static CUmemPoolProps pool_properties;
  return {
    CASE(cuMemGetInfo, "no place for the answer", CUDA_SUCCESS, nullptr, nullptr),
        CASE(cuMemAlloc, "no bytes", CUDA_ERROR_INVALID_VALUE, &address, 0),
        CASE(cuMemAlloc, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 16),
        CASE(cuMemAlloc, "more than there is", CUDA_ERROR_OUT_OF_MEMORY, &address, 1ull << 50),
        CASE_DO(cuMemAlloc, "no current context", CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSetCurrent)(nullptr);
                return CU(cuMemAlloc)(&address, 16);),
        CASE(cuMemAllocPitch, "an element size that is none", CUDA_ERROR_INVALID_VALUE, &address, &size, 100, 4, 3),
        CASE(cuMemAllocPitch, "no width", CUDA_ERROR_INVALID_VALUE, &address, &size, 0, 4, 4),
        CASE(cuMemAllocManaged, "no bytes", CUDA_ERROR_INVALID_VALUE, &address, 0, CU_MEM_ATTACH_GLOBAL),
        CASE(cuMemAllocManaged, "no flags", CUDA_ERROR_INVALID_VALUE, &address, 16, 0),
        CASE(cuMemFree, "an address inside an allocation", CUDA_ERROR_INVALID_VALUE, g.memory + 256),
        CASE(cuMemFree, "an address that is no allocation", CUDA_ERROR_INVALID_VALUE, 0x1000),
        CASE_DO(cuMemFree, "twice", CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(&address, 16); CU(cuMemFree)(address);
                return CU(cuMemFree)(address);),
        CASE(cuMemGetAddressRange, "an address that is no allocation", CUDA_ERROR_NOT_FOUND, &address, &size, 0x1000),
        CASE(cuMemHostAlloc, "unknown flags", CUDA_ERROR_INVALID_VALUE, &pointer, 16, 0x1000),
        CASE(cuMemHostAlloc, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 16, 0),
        CASE(cuMemFreeHost, "an address inside an allocation", CUDA_ERROR_INVALID_VALUE,
             static_cast<char*>(g.pinned) + 16),
        CASE(cuMemFreeHost, "memory of the program", CUDA_ERROR_INVALID_VALUE, bytes),
        CASE(cuMemHostRegister, "no bytes", CUDA_ERROR_INVALID_VALUE, bytes, 0, 0),
        CASE(cuMemHostRegister, "the null pointer", CUDA_ERROR_INVALID_VALUE, nullptr, 16, 0),
        CASE(cuMemHostRegister, "unknown flags", CUDA_ERROR_INVALID_VALUE, bytes, 16, 0x1000),
        CASE(cuMemHostUnregister, "memory that was not registered", CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, bytes),
        CASE(cuMemHostGetDevicePointer, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, &address, g.pinned, 1),
        CASE(cuMemHostGetDevicePointer, "memory of the program", CUDA_ERROR_INVALID_VALUE, &address, bytes, 0),
        CASE(cuMemHostGetFlags, "memory of the program", CUDA_ERROR_INVALID_VALUE, &flags, bytes),
        // Copies
        CASE(cuMemcpyHtoD, "a destination that is no device memory", CUDA_ERROR_INVALID_VALUE, 0x1000, bytes, 16),
        CASE(cuMemcpyHtoD, "beyond the allocation", CUDA_ERROR_INVALID_VALUE, g.memory, bytes, 64u << 20),
        CASE(cuMemcpyHtoD, "the null source", CUDA_ERROR_INVALID_VALUE, g.memory, nullptr, 16),
        CASE(cuMemcpyDtoH, "a source that is no device memory", CUDA_ERROR_INVALID_VALUE, bytes, 0x1000, 16),
        CASE(cuMemcpyDtoH, "the null destination", CUDA_ERROR_INVALID_VALUE, nullptr, g.memory, 16),
        CASE(cuMemcpyDtoD, "a destination that is no device memory", CUDA_ERROR_INVALID_VALUE, 0x1000, g.memory, 16),
        CASE(cuMemcpyDtoD, "an unmapped source", CUDA_ERROR_INVALID_VALUE, g.memory, g.reserved + 2 * g.unit, 16),
        CASE(cuMemcpyHtoDAsync, "a destination that is no device memory", CUDA_ERROR_INVALID_VALUE, 0x1000, bytes, 16,
             g.stream),
        CASE(cuMemcpyAsync, "the null destination", CUDA_ERROR_INVALID_VALUE, 0, g.memory, 16, g.stream),
        CASE_SIM(cuMemcpyAsync, "no stream", CUDA_ERROR_INVALID_HANDLE, g.memory, g.memory + 64, 16,
                 reinterpret_cast<CUstream>(0x1230)),
        CASE(cuMemcpy2D, "no description", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE_DO(cuMemcpy2D, "a pitch below the width", CUDA_ERROR_INVALID_VALUE, CUDA_MEMCPY2D copy = {};
                copy.srcMemoryType = CU_MEMORYTYPE_HOST; copy.srcHost = bytes; copy.srcPitch = 8;
                copy.dstMemoryType = CU_MEMORYTYPE_DEVICE; copy.dstDevice = g.memory; copy.dstPitch = 32;
                copy.WidthInBytes = 16; copy.Height = 2; return CU(cuMemcpy2D)(&copy);),
        CASE(cuMemcpy3D, "no description", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuMemsetD8, "an address that is no device memory", CUDA_ERROR_INVALID_VALUE, 0x1000, 0, 16),
        CASE(cuMemsetD8, "beyond the allocation", CUDA_ERROR_INVALID_VALUE, g.memory, 0, 64u << 20),
        CASE(cuMemsetD16, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, g.memory + 1, 0, 16),
        CASE(cuMemsetD32, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, g.memory + 2, 0, 16),
        CASE(cuMemsetD2D32, "a pitch that is not aligned", CUDA_ERROR_INVALID_VALUE, g.memory, 33, 0, 4, 2),
        // Virtual memory
        CASE(cuMemGetAllocationGranularity, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, &g.properties,
             CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CASE(cuMemGetAllocationGranularity, "no properties", CUDA_ERROR_INVALID_VALUE, &size, nullptr,
             CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CASE(cuMemAddressReserve, "no bytes", CUDA_ERROR_INVALID_VALUE, &address, 0, 0, 0, 0),
        CASE(cuMemAddressReserve, "a size that is no multiple", CUDA_ERROR_INVALID_VALUE, &address, g.unit + 1, 0, 0,
             0),
        CASE(cuMemAddressReserve, "an alignment that is no power of two", CUDA_ERROR_INVALID_VALUE, &address, g.unit,
             3 * g.unit, 0, 0),
        CASE(cuMemAddressReserve, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, &address, g.unit, 0, 0, 8),
        CASE(cuMemAddressFree, "another size than reserved", CUDA_ERROR_INVALID_VALUE, g.reserved, g.unit),
        CASE(cuMemAddressFree, "no reservation", CUDA_ERROR_INVALID_VALUE, 0x1000, g.unit),
        CASE(cuMemCreate, "no bytes", CUDA_ERROR_INVALID_VALUE, &handle, 0, &g.properties, 0),
        CASE(cuMemCreate, "a size that is no multiple", CUDA_ERROR_INVALID_VALUE, &handle, g.unit + 1, &g.properties,
             0),
        CASE(cuMemCreate, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, &handle, g.unit, &g.properties, 1),
        CASE(cuMemCreate, "no properties", CUDA_ERROR_INVALID_VALUE, &handle, g.unit, nullptr, 0),
        CASE(cuMemCreate, "more than there is", CUDA_ERROR_OUT_OF_MEMORY, &handle, 1ull << 50, &g.properties, 0),
        CASE_DO(cuMemCreate, "no such device", CUDA_ERROR_INVALID_DEVICE, properties = g.properties;
                properties.location.id = 1000; return CU(cuMemCreate)(&handle, g.unit, &properties, 0);),
        CASE_DO(cuMemCreate, "memory that is not pinned", CUDA_ERROR_INVALID_VALUE, properties = g.properties;
                properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
                return CU(cuMemCreate)(&handle, g.unit, &properties, 0);),
        CASE_DO(cuMemCreate, "the current NUMA node", CUDA_ERROR_INVALID_VALUE, properties = g.properties;
                properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
                return CU(cuMemCreate)(&handle, g.unit, &properties, 0);),
        CASE_SIM(cuMemRelease, "no handle", CUDA_ERROR_INVALID_VALUE, 0x1230),
        CASE(cuMemMap, "an offset that is not zero", CUDA_ERROR_NOT_SUPPORTED, g.reserved + g.unit, g.unit, g.unit,
             g.chunk, 0),
        CASE(cuMemMap, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, g.reserved + g.unit, g.unit, 0, g.chunk, 1),
        CASE(cuMemMap, "an address that is mapped", CUDA_ERROR_INVALID_VALUE, g.reserved, g.unit, 0, g.chunk, 0),
        CASE(cuMemMap, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, g.reserved + g.unit + 4096, g.unit,
             0, g.chunk, 0),
        CASE(cuMemMap, "more than the handle has", CUDA_ERROR_NOT_SUPPORTED, g.reserved + g.unit, 2 * g.unit, 0,
             g.chunk, 0),
        CASE_SIM(cuMemMap, "no handle", CUDA_ERROR_INVALID_VALUE, g.reserved + g.unit, g.unit, 0, 0x1230, 0),
        CASE_SIM(cuMemUnmap, "an address that is not mapped", CUDA_ERROR_INVALID_VALUE, g.reserved + g.unit, g.unit),
        CASE(cuMemUnmap, "less than was mapped", CUDA_ERROR_INVALID_VALUE, g.reserved, g.unit / 2),
        CASE_DO(cuMemSetAccess, "an address that is not mapped", CUDA_ERROR_INVALID_VALUE,
                access = {g.properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
                return CU(cuMemSetAccess)(g.reserved + g.unit, g.unit, &access, 1);),
        CASE_DO(cuMemSetAccess, "no such device", CUDA_ERROR_INVALID_VALUE,
                access = {g.properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
                access.location.id = 1000; return CU(cuMemSetAccess)(g.reserved, g.unit, &access, 1);),
        CASE_DO(cuMemSetAccess, "the host for device memory", CUDA_ERROR_NOT_SUPPORTED,
                access = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
                return CU(cuMemSetAccess)(g.reserved, g.unit, &access, 1);),
        CASE(cuMemSetAccess, "no descriptors", CUDA_ERROR_INVALID_VALUE, g.reserved, g.unit, nullptr, 1),
        CASE_DO(cuMemGetAccess, "an address that is not mapped", CUDA_ERROR_INVALID_VALUE,
                return CU(cuMemGetAccess)(&wide, &g.properties.location, g.reserved + g.unit);),
        CASE(cuMemRetainAllocationHandle, "an address that is not mapped", CUDA_ERROR_INVALID_VALUE, &handle,
             reinterpret_cast<void*>(g.reserved + g.unit)),
        CASE(cuMemExportToShareableHandle, "a handle that is not shareable", CUDA_ERROR_INVALID_VALUE, &second, g.chunk,
             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        // Pools
        CASE(cuMemAllocAsync, "no bytes", CUDA_SUCCESS, &address, 0, g.stream),
        CASE(cuMemAllocAsync, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 16, g.stream),
        CASE(cuMemAllocAsync, "more than there is", CUDA_ERROR_OUT_OF_MEMORY, &address, 1ull << 50, g.stream),
        CASE(cuMemFreeAsync, "an address that is no allocation", CUDA_ERROR_INVALID_VALUE, 0x1000, g.stream),
        CASE_DO(cuMemPoolCreate, "no such device", CUDA_ERROR_INVALID_VALUE, pool_properties = {};
                pool_properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                pool_properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1000};
                return CU(cuMemPoolCreate)(&pool, &pool_properties);),
        CASE(cuMemPoolDestroy, "the default pool", CUDA_ERROR_INVALID_VALUE, g.pool),
        CASE(cuMemPoolGetAttribute, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.pool,
             CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr),
        CASE_DO(cuMemPoolSetAttribute, "a high mark that is not zero", CUDA_ERROR_INVALID_VALUE, cuuint64_t one = 1;
                return CU(cuMemPoolSetAttribute)(g.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one);),
        CASE(cuDeviceGetDefaultMemPool, "no such device", CUDA_ERROR_INVALID_DEVICE, &pool, 1000),
        // Pointers
        CASE(cuPointerGetAttribute, "memory of the program", CUDA_ERROR_INVALID_VALUE, &flags,
             CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(bytes)),
        CASE(cuPointerGetAttribute, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr,
             CU_POINTER_ATTRIBUTE_MEMORY_TYPE, g.memory),
        CASE(cuPointerGetAttribute, "no such attribute", CUDA_ERROR_INVALID_VALUE, &flags,
             static_cast<CUpointer_attribute>(1000), g.memory),
        CASE(cuPointerGetAttributes, "no attributes", CUDA_ERROR_INVALID_VALUE, 0, nullptr, nullptr, g.memory),
        CASE(cuMemPrefetchAsync, "memory that is not managed", CUDA_ERROR_INVALID_VALUE, g.memory, 16,
             CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, g.stream),
        CASE(cuMemAdvise, "memory that is not managed", CUDA_ERROR_INVALID_VALUE, g.memory, 16,
             CU_MEM_ADVISE_SET_READ_MOSTLY, CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0}),
  };
}

}  // namespace reprise::sim_test
