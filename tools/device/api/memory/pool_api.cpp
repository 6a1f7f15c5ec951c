// cuMemAllocAsync, cuMemPool* and their kin.
#include <algorithm>

#include "tools/device/engines/device.h"
#include "tools/device/memory/pool.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

// Keeps something until a stream gets there.
class Hold final : public Operation {
 public:
  explicit Hold(std::shared_ptr<void> held) : held_(std::move(held)) {}
  OperationKind kind() const override { return OperationKind::empty; }
  void execute(const Execution& /*execution*/) const override {}

 private:
  const std::shared_ptr<void> held_;
};

CUresult allocate(Context& context, Pool& pool, CUdeviceptr* address, size_t bytes, CUstream handle) {
  SIM_REQUIRE(address != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(context, handle, &stream));
  if (bytes == 0) {  // as an H100 said, driver 580
    *address = 0;
    return CUDA_SUCCESS;
  }
  if (stream->capturing.load(std::memory_order_relaxed)) return capture_allocation(*stream, pool, bytes, address);
  return pool.allocate(stream->context, stream, bytes, address);
}

bool is_high(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

int* reuse_flag(Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool.reuse_follow_event;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool.reuse_opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool.reuse_internal;
    default:
      return nullptr;
  }
}

// Which locations there are, and that pools on the host are not for other processes: cuMemPoolCreate in cuda.h. The one
// NUMA node of the host is 0.
CUresult check_pool_properties(const CUmemPoolProps& properties) {
  const CUmemLocation& location = properties.location;
  const bool managed = properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
  SIM_REQUIRE(managed || properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE ||
                  properties.handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
              CUDA_ERROR_NOT_SUPPORTED);
  const bool shared = properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return find_device(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
      return shared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_NONE:
      return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

Device& device_of(const CUmemPoolProps& properties) {
  const bool named = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!named && thread_state.current != nullptr) return thread_state.current->device;
  return *find_device(named ? properties.location.id : 0);
}

}  // namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return allocate(*context, *current_pool(context->device), dptr, bytesize, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_VALUE);
  return allocate(*context, *found, dptr, bytesize, hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  const auto range = memory_map().find(dptr);
  SIM_REQUIRE(range && range->base == dptr && !range->freed, CUDA_ERROR_INVALID_VALUE);
  if (stream->capturing.load(std::memory_order_relaxed)) return capture_free(*stream, dptr);
  if (range->kind == RangeKind::graph) {
    std::shared_ptr<void> holder;
    SIM_TRY(free_graph_memory(*range, &holder));
    stream->submit(std::make_shared<Hold>(std::move(holder)));
    return CUDA_SUCCESS;
  }
  SIM_REQUIRE(range->kind == RangeKind::pool, CUDA_ERROR_INVALID_VALUE);
  range->pool->free(*range, stream);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  SIM_ENTER();
  SIM_REQUIRE(pool != nullptr && poolProps != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_pool_properties(*poolProps));
  auto made = std::make_shared<Pool>(device_of(*poolProps));
  made->properties = *poolProps;
  made->readers = made->managed() ? ~0ull : made->on_host() ? 0 : 1ull << made->device.ordinal;
  made->handle = pools().add(made);
  *pool = made->handle;
  return CUDA_SUCCESS;
}

// Blocks that are in use live on; their memory goes back when they are freed.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  SIM_ENTER();
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr && found != default_pool(found->device), CUDA_ERROR_INVALID_VALUE);
  {
    const std::lock_guard lock(found->device.mutex);
    if (found->device.current_pool == found) found->device.current_pool = nullptr;
  }
  found->trim(0);
  pools().remove(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  SIM_ENTER();
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_VALUE);
  found->trim(minBytesToKeep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  SIM_ENTER();
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr && value != nullptr, CUDA_ERROR_INVALID_VALUE);
  if (int* flag = reuse_flag(*found, attr); flag != nullptr) {
    *flag = *static_cast<const int*>(value);
  } else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    found->release_threshold = *static_cast<const cuuint64_t*>(value);
  } else {
    // The high marks can only be set back to now.
    SIM_REQUIRE(is_high(attr) && *static_cast<const cuuint64_t*>(value) == 0, CUDA_ERROR_INVALID_VALUE);
    found->reset_high(attr);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  SIM_ENTER();
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr && value != nullptr, CUDA_ERROR_INVALID_VALUE);
  if (const int* flag = reuse_flag(*found, attr); flag != nullptr) {
    *static_cast<int*>(value) = *flag;
    return CUDA_SUCCESS;
  }
  SIM_REQUIRE(attr >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && attr <= CU_MEMPOOL_ATTR_USED_MEM_HIGH,
              CUDA_ERROR_INVALID_VALUE);
  *static_cast<cuuint64_t*>(value) = found->attribute(attr);
  return CUDA_SUCCESS;
}

// Access is to read and write, or none; a pool's own device keeps it.
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  SIM_ENTER();
  Pool* const found = pools().get(pool);
  SIM_REQUIRE(found != nullptr && (map != nullptr || count == 0), CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    SIM_REQUIRE(map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(find_device(map[i].location.id) != nullptr, CUDA_ERROR_INVALID_DEVICE);
    const bool given = map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const bool own = !found->on_host() && map[i].location.id == found->device.ordinal;
    SIM_REQUIRE(given || !own, CUDA_ERROR_INVALID_VALUE);
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bit = 1ull << map[i].location.id;
    if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      found->readers |= bit;
    } else {
      found->readers &= ~bit;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  SIM_ENTER();
  Pool* const found = pools().get(memPool);
  SIM_REQUIRE(flags != nullptr && location != nullptr && found != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(location->type == CU_MEM_LOCATION_TYPE_DEVICE && find_device(location->id) != nullptr,
              CUDA_ERROR_INVALID_DEVICE);
  const bool given = (found->readers.load() & 1ull << location->id) != 0;
  *flags = given ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pool_out != nullptr, CUDA_ERROR_INVALID_VALUE);
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *pool_out = default_pool(*device)->handle;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *pool = current_pool(*device)->handle;
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  SIM_ENTER();
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  const std::shared_ptr<Pool> found = pools().share(pool);
  SIM_REQUIRE(found != nullptr && &found->device == device, CUDA_ERROR_INVALID_VALUE);
  const std::lock_guard lock(device->mutex);
  device->current_pool = found;
  return CUDA_SUCCESS;
}

}  // extern "C"
