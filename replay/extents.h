// Tells the simulated device where the program's allocations begin and end: its dataflow-hash kernels need that, and
// our arena hides it. Kernels look extents up when they run, which is after the program's free may have been performed:
// so an extent stays until its address means something else. Does nothing on other drivers. Dispatcher only.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "replay/shared.h"
#include "replay/streams.h"

namespace reprise::replay {

class Extents {
 public:
  Extents(Shared* shared, Lanes* lanes) noexcept : shared_(*shared), lanes_(*lanes) {}

  void note(uint64_t address, uint64_t bytes) noexcept {
    if (shared_.notes.note == nullptr) return;
    uint64_t& known = known_[address];
    if (known == bytes) return;
    if (known != 0) {
      lanes_.synchronize();
      shared_.notes.forget(address);
    }
    known = bytes;
    shared_.notes.note(address, bytes);
  }
  // The address may become part of something else, and nothing that uses it runs any more.
  void forget(uint64_t address) noexcept {
    if (shared_.notes.forget == nullptr || known_.erase(address) == 0) return;
    shared_.notes.forget(address);
  }

 private:
  Shared& shared_;
  Lanes& lanes_;
  std::unordered_map<uint64_t, uint64_t> known_;
};

}  // namespace reprise::replay
