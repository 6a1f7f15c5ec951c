// Memory pools: stream-ordered allocation. A freed block can be used again at once by the stream that freed it, and by
// others when that stream has got there. Callers: pool_api.cpp, cuMemFree, stream capture, calls that synchronise,
// contexts that end.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/handles.h"
#include "tools/device/memory/memory.h"

namespace reprise::sim {

class Context;
class Device;
class Stream;

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  explicit Pool(Device& its_device) : device(its_device) {}
  Device& device;  // of a pool on the host: the one that was current
  CUmemoryPool handle = nullptr;
  CUmemPoolProps properties = {};
  int reuse_follow_event = 1, reuse_opportunistic = 1, reuse_internal = 1;
  std::atomic<uint64_t> release_threshold{0};
  std::atomic<uint64_t> readers{0};  // devices that may touch its memory, a bit each

  bool on_host() const { return !managed() && properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  bool managed() const { return properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }

  // Work on `stream` and behind it may use the block.
  CUresult allocate(Context& context, const std::shared_ptr<Stream>& stream, uint64_t bytes, CUdeviceptr* address);
  // In stream order; `range` is the memory map's.
  void free(const Range& range, const std::shared_ptr<Stream>& stream);
  // Gives the memory of the block back to the device; no work may use it any more.
  void release(const Range& range);
  // Gives unused blocks back to the device until `keep` bytes are held.
  void trim(uint64_t keep);

  uint64_t attribute(CUmemPool_attribute attribute);
  void reset_high(CUmemPool_attribute attribute);

 private:
  struct Cached {
    CUdeviceptr address;
    uint64_t bytes;  // rounded
    std::shared_ptr<Stream> stream;
    uint64_t position;  // free for every stream once its own has got there
  };
  bool take_cached(Context& context, const std::shared_ptr<Stream>& stream, uint64_t bytes, CUdeviceptr* address);
  bool wait_for_one();
  CUresult make_block(Context& context, uint64_t bytes, CUdeviceptr* address);
  void record_reserved(int64_t change);
  void record_used(int64_t change);
  std::mutex mutex_;
  std::vector<Cached> cached_;
  uint64_t reserved_ = 0, reserved_high_ = 0, used_ = 0, used_high_ = 0;
};

using PoolTable = HandleTable<Pool, CUmemoryPool, HandleKind::pool>;
PoolTable& pools();
std::shared_ptr<Pool> default_pool(Device& device);
std::shared_ptr<Pool> current_pool(Device& device);
void release_pool_block(const Range& range);
// At synchronisation: pools give back what is above their release threshold.
void trim_pools(Device& device);

}  // namespace reprise::sim
