#include "tools/device/memory/extents.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>

#include "preload/driver/sim_abi.h"
#include "tools/device/base/thread.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/vmm.h"

namespace reprise::sim {
namespace {

// Behind every call.
constexpr uint64_t kNow = ~uint64_t{0} - 1;

// So many allocations may end while a call is still to be issued. Calls are no measure: a thread that polls an event
// makes a million of them in a moment.
constexpr size_t kKept = 1 << 16;

// An allocation that the shim serves itself: live for the calls behind `born` and before `died`.
struct Served {
  Extent extent;
  uint64_t born = 0;
  uint64_t died = kNow;

  bool holds(uint64_t address, uint64_t call) const {
    return address - extent.base < extent.bytes && born < call && call < died;
  }
};

class ServedAllocations {
 public:
  void begin(uint64_t address, uint64_t bytes, uint64_t call) {
    const std::unique_lock lock(mutex_);
    live_[address] = {{address, bytes, std::make_shared<WrittenBytes>(bytes)}, call, kNow};
    used_.store(true, std::memory_order_release);
  }

  void end(uint64_t address, uint64_t call) {
    const std::unique_lock lock(mutex_);
    auto node = live_.extract(address);
    if (node.empty() || call == 0) return;
    node.mapped().died = call;
    // The thread that frees may have waited since it made the call, while others made many.
    const auto later = std::upper_bound(ended_.begin(), ended_.end(), call,
                                        [](uint64_t died, const Served& one) { return died < one.died; });
    ended_.insert(later, std::move(node.mapped()));
    if (ended_.size() > kKept) ended_.pop_front();
  }

  bool find(uint64_t address, uint64_t call, Extent* extent) const {
    if (!used_.load(std::memory_order_acquire)) return false;
    const std::shared_lock lock(mutex_);
    auto next = live_.upper_bound(address);
    if (next != live_.begin() && std::prev(next)->second.holds(address, call)) {
      *extent = std::prev(next)->second.extent;
      return true;
    }
    for (auto old = ended_.rbegin(); old != ended_.rend() && old->died > call; ++old) {
      if (!old->holds(address, call)) continue;
      *extent = old->extent;
      return true;
    }
    return false;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::atomic<bool> used_{false};
  std::map<uint64_t, Served> live_;
  std::deque<Served> ended_;  // in the order of their ends
};

ServedAllocations& served() {
  static ServedAllocations& instance = *new ServedAllocations;
  return instance;
}

}  // namespace

bool find_extent(uint64_t address, Extent* extent) {
  const uint64_t call = thread_state.call == 0 || thread_state.call == kRepriseSimMoves ? kNow - 1 : thread_state.call;
  if (served().find(address, call, extent)) return true;
  const std::optional<Range> range = memory_map().find(address);
  // Freed in stream order: the driver still has it, the program does not.
  if (!range || range->written == nullptr || range->freed) return false;
  *extent = {range->base, range->bytes, range->written};
  return true;
}

WrittenPlace WrittenPlace::at(uint64_t address) {
  WrittenPlace place;
  if (thread_state.call != kRepriseSimMoves) find_extent(address, &place.extent_);
  return place;
}

void WrittenPlace::mark(uint64_t address, uint64_t bytes) const {
  if (!known()) return;
  const uint64_t offset = address - extent_.base;
  extent_.written->mark(offset, offset + bytes);
}

void WrittenPlace::copy(uint64_t address, const WrittenPlace& source, uint64_t source_address, uint64_t bytes) const {
  if (!source.known()) return mark(address, bytes);
  if (!known()) return;
  const uint64_t offset = address - extent_.base;
  if (source.extent_.written->complete()) {
    extent_.written->mark(offset, offset + bytes);
  } else {
    extent_.written->copy(offset, *source.extent_.written, source_address - source.extent_.base, bytes);
  }
}

bool is_known_address(uint64_t word) {
  return memory_map().find(word).has_value() || is_reserved(word) || arena().contains(word);
}

}  // namespace reprise::sim

void repriseSimAllocated(uint64_t address, uint64_t bytes, uint64_t call) {
  reprise::sim::served().begin(address, bytes, call);
}

void repriseSimFreed(uint64_t address, uint64_t call) { reprise::sim::served().end(address, call); }
