#include "tools/device/memory/pool.h"

#include <algorithm>

#include "tools/device/engines/device.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/host.h"
#include "tools/device/streams/context.h"
#include "tools/device/streams/operations.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {
namespace {

std::shared_ptr<Pool> make_default_pool(Device& device) {
  auto pool = std::make_shared<Pool>(device);
  pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  pool->readers = 1ull << device.ordinal;
  pool->handle = pools().add(pool);
  return pool;
}

void free_pool_memory(const Range& range) { range.is_host() ? free_host_memory(range) : free_device_memory(range); }

}  // namespace

PoolTable& pools() {
  static PoolTable& table = *new PoolTable;
  return table;
}

std::shared_ptr<Pool> default_pool(Device& device) {
  const std::lock_guard lock(device.mutex);
  if (device.default_pool == nullptr) device.default_pool = make_default_pool(device);
  return device.default_pool;
}

std::shared_ptr<Pool> current_pool(Device& device) {
  const std::shared_ptr<Pool> fallback = default_pool(device);
  const std::lock_guard lock(device.mutex);
  return device.current_pool == nullptr ? fallback : device.current_pool;
}

void Pool::record_reserved(int64_t change) {
  reserved_ += static_cast<uint64_t>(change);
  reserved_high_ = std::max(reserved_high_, reserved_);
}

void Pool::record_used(int64_t change) {
  used_ += static_cast<uint64_t>(change);
  used_high_ = std::max(used_high_, used_);
}

// A block that its old stream's queued work still uses keeps its exact size: kernels that run later look up its extent.
bool Pool::take_cached(Context& context, const std::shared_ptr<Stream>& stream, uint64_t bytes, CUdeviceptr* address) {
  const uint64_t rounded = round_up(bytes, kDeviceUnit);
  for (auto it = cached_.begin(); it != cached_.end(); ++it) {
    if (it->bytes != rounded) continue;
    const bool reached = it->stream->reached(it->position);
    if (!reached && it->stream != stream) continue;
    bool taken = false;
    memory_map().visit(it->address, [&](Range& range) {
      if (!reached && range.bytes != bytes) return;
      range.bytes = bytes;
      range.freed = false;
      range.context = &context;
      range.buffer_id = next_buffer_id();
      if (!range.is_host()) range.written = std::make_shared<WrittenBytes>(bytes);
      taken = true;
    });
    if (!taken) continue;
    *address = it->address;
    cached_.erase(it);
    return true;
  }
  return false;
}

// Waits until every stream may take one more cached block; false when there is none to wait for.
bool Pool::wait_for_one() {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;
  {
    const std::lock_guard lock(mutex_);
    if (cached_.empty()) return false;
    stream = cached_.front().stream;
    position = cached_.front().position;
  }
  stream->wait_for(position);
  trim(0);
  return true;
}

CUresult Pool::make_block(Context& context, uint64_t bytes, CUdeviceptr* address) {
  return on_host() ? allocate_pool_host_memory(context, bytes, shared_from_this(), address)
                   : allocate_device_memory(context, bytes, RangeKind::pool, shared_from_this(), address);
}

CUresult Pool::allocate(Context& context, const std::shared_ptr<Stream>& stream, uint64_t bytes, CUdeviceptr* address) {
  const auto rounded = static_cast<int64_t>(round_up(bytes, kDeviceUnit));
  {
    const std::lock_guard lock(mutex_);
    if (take_cached(context, stream, bytes, address)) {
      record_used(rounded);
      return CUDA_SUCCESS;
    }
  }
  CUresult result = make_block(context, bytes, address);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    trim(0);
    result = make_block(context, bytes, address);
  }
  while (result == CUDA_ERROR_OUT_OF_MEMORY && wait_for_one()) {
    result = make_block(context, bytes, address);
  }
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  record_reserved(rounded);
  record_used(rounded);
  return CUDA_SUCCESS;
}

void Pool::free(const Range& range, const std::shared_ptr<Stream>& stream) {
  memory_map().visit(range.base, [](Range& own) { own.freed = true; });
  const uint64_t position = stream->submit(empty_operation());
  const uint64_t rounded = round_up(range.bytes, kDeviceUnit);
  const std::lock_guard lock(mutex_);
  record_used(-static_cast<int64_t>(rounded));
  cached_.push_back({range.base, rounded, stream, position});
}

void Pool::release(const Range& range) {
  const auto rounded = static_cast<int64_t>(round_up(range.bytes, kDeviceUnit));
  free_pool_memory(range);
  const std::lock_guard lock(mutex_);
  record_used(-rounded);
  record_reserved(-rounded);
}

void Pool::trim(uint64_t keep) {
  std::vector<Range> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = cached_.begin(); it != cached_.end() && reserved_ > keep;) {
      const auto range = memory_map().find(it->address);
      if (!it->stream->reached(it->position) || !range) {
        ++it;
        continue;
      }
      dropped.push_back(*range);
      record_reserved(-static_cast<int64_t>(it->bytes));
      it = cached_.erase(it);
    }
  }
  for (const Range& range : dropped) free_pool_memory(range);
}

uint64_t Pool::attribute(CUmemPool_attribute attribute) {
  const std::lock_guard lock(mutex_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return reserved_;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return reserved_high_;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return used_;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return used_high_;
    default:
      return release_threshold;
  }
}

void Pool::reset_high(CUmemPool_attribute attribute) {
  const std::lock_guard lock(mutex_);
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) reserved_high_ = reserved_;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) used_high_ = used_;
}

void release_pool_block(const Range& range) { range.pool->release(range); }

void trim_pools(Device& device) {
  static std::atomic<bool>& used = *new std::atomic<bool>(false);
  if (!used.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(device.mutex);
    if (device.default_pool == nullptr && device.current_pool == nullptr) return;
    used.store(true, std::memory_order_relaxed);
  }
  for (const auto& [handle, pool] : pools().all()) {
    if (&pool->device == &device) pool->trim(pool->release_threshold.load());
  }
}

}  // namespace reprise::sim
