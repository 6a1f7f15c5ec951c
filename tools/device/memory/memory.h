// All memory that the driver knows, by address: device allocations, pinned host memory, mapped ranges, module globals.
// The answer to "what is this pointer" for copies, launches and queries. Callers: memory, copy, pointer and VMM
// functions.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/written.h"

namespace reprise::sim {

class Context;
class Device;
class Pool;
struct PhysicalChunk;

enum class RangeKind : uint8_t {
  device,      // cuMemAlloc and its kin
  pool,        // stream ordered
  graph,       // of a graph's allocation node
  managed,     // cuMemAllocManaged
  global,      // a module's variable
  host,        // cuMemHostAlloc
  registered,  // cuMemHostRegister
  mapping,     // cuMemMap
};

struct Range {
  uint64_t base = 0;
  uint64_t bytes = 0;  // as asked for
  RangeKind kind = RangeKind::device;
  Context* context = nullptr;
  Device* device = nullptr;  // nullptr: host memory
  unsigned flags = 0;        // of cuMemHostAlloc and cuMemHostRegister
  uint64_t buffer_id = 0;
  std::shared_ptr<WrittenBytes> written;         // kinds device and pool
  std::shared_ptr<Pool> pool;                    // kind pool
  bool freed = false;                            // kind pool: cuMemFreeAsync was called, the stream has not got there
  std::shared_ptr<std::atomic<bool>> allocated;  // kind graph: by a launch, and nobody has freed it since
  std::shared_ptr<void> holder;                  // ... and while that is so, what keeps it when the graph is gone
  std::shared_ptr<PhysicalChunk> chunk;          // kind mapping
  uint64_t readers = 0;                          // kind mapping: devices with access, a bit each; bit 63: the host
  uint64_t writers = 0;

  uint64_t end() const { return base + bytes; }
  bool is_host() const { return device == nullptr; }
};

class MemoryMap {
 public:
  // False when it would overlap another range.
  bool add(Range range);
  // The range that starts at `base`, taken out.
  std::optional<Range> remove(uint64_t base);
  // The range that contains `address`.
  std::optional<Range> find(uint64_t address) const;
  // Calls visit(range) with the range that contains `address`, under the lock; false when there is none.
  template <typename Visit>
  bool visit(uint64_t address, Visit visit) {
    const std::unique_lock lock(mutex_);
    const auto found = locate(address);
    if (found == ranges_.end()) return false;
    visit(found->second);
    return true;
  }

  // What a copy needs to know of [address, address + bytes).
  struct Place {
    bool known = false;      // in a range of the driver; otherwise ordinary host memory
    bool complete = false;   // known, and all of it lies in ranges without a gap
    bool host = false;       // pinned host memory, or VMM memory on the host
    bool pageable = false;   // not known
    bool accessible = true;  // mapped ranges: access was granted
    Device* device = nullptr;
  };
  Place place(uint64_t address, uint64_t bytes) const;
  // May work of this context, on its device, touch what lies there? Mappings and pools say so by device
  // (cuMemSetAccess, cuMemPoolSetAccess), other memory of another device by context (cuCtxEnablePeerAccess).
  bool may_touch(const Context& context, uint64_t address) const;

  // For the VMM functions, which change several ranges at once: the lock, and the ranges by address.
  std::shared_mutex& mutex() const { return mutex_; }
  std::map<uint64_t, Range>& ranges() { return ranges_; }

 private:
  std::map<uint64_t, Range>::iterator locate(uint64_t address);
  std::map<uint64_t, Range>::const_iterator locate(uint64_t address) const;
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Range> ranges_;
};

MemoryMap& memory_map();
uint64_t next_buffer_id() noexcept;

// Device memory, charged as drivers do (decision 0026: footprint.h, with the granularity as the chunk) and entered in
// the map (`kind` device, pool, managed or global). What has 1 MiB and more has pages of its own, so that an access
// beyond it or after its release faults; smaller ones share.
CUresult allocate_device_memory(Context& context, uint64_t bytes, RangeKind kind, std::shared_ptr<Pool> pool,
                                CUdeviceptr* address);
// A free outside the graph: not ok when no launch has allocated it since the last one. It lasts while *holder does, if
// the graph is gone.
CUresult free_graph_memory(const Range& range, std::shared_ptr<void>* holder);
// Takes device memory out of the map and gives it back to the device. `range` is what the map said.
void free_device_memory(const Range& range);

// Memory of a context that goes away: everything but mappings, which belong to the process.
void release_memory(Context& context);

}  // namespace reprise::sim
