// Tells the simulated device where the program's allocations begin and end: its dataflow-hash kernels need that, and
// our arena hides it. A launch sees the extents that hold when it is issued, which may be after the program's free was
// performed: so an extent stays until its addresses are used for another allocation. Does nothing on other drivers.
// Dispatcher thread only.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>

#include "replay/dispatch/shared.h"

namespace reprise::replay {

class Extents {
 public:
  explicit Extents(Shared* shared) noexcept : shared_(*shared) {}

  void insert(uint64_t address, uint64_t bytes) noexcept {
    if (shared_.extent_observer.insert == nullptr) return;
    if (const auto same = known_.find(address); same != known_.end() && same->second == bytes) return;
    // Addresses are used again: an older extent that overlaps has ended.
    auto old = known_.upper_bound(address);
    if (old != known_.begin() && std::prev(old)->first + std::prev(old)->second > address) --old;
    while (old != known_.end() && old->first < address + bytes) {
      shared_.extent_observer.erase(old->first);
      old = known_.erase(old);
    }
    known_[address] = bytes;
    shared_.extent_observer.insert(address, bytes);
  }
  // The address may become part of another allocation, and no work that uses it runs any more.
  void erase(uint64_t address) noexcept {
    if (shared_.extent_observer.erase == nullptr || known_.erase(address) == 0) return;
    shared_.extent_observer.erase(address);
  }

 private:
  Shared& shared_;
  std::map<uint64_t, uint64_t> known_;  // address -> bytes
};

}  // namespace reprise::replay
