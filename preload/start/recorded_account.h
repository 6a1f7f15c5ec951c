// What a program that is recorded takes of the device, with what it holds beside the tensors that a plan can move:
// plans leave room for that, and a percentage is of both. By the rule that runs use (replay/issue/account.h).
// Caller: the forwarder, from all threads.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "preload/driver/beside.h"
#include "preload/driver/graph_memory.h"
#include "preload/footprint/footprint.h"
#include "preload/record/recorder.h"

namespace reprise {

class RecordedAccount {
 public:
  // Before the program's first allocation, of this device: what it holds already counts. Later ones change nothing.
  void open(CUdevice device) noexcept;
  void allocated(uint64_t allocation, uint64_t bytes, CUdevice device) noexcept;
  void freed(uint64_t allocation) noexcept;
  // By the driver for itself.
  void taken(uint64_t bytes) noexcept;
  // `free_after`: of the device.
  void beside(const BesideCall& call, std::optional<uint64_t> free_after) noexcept;
  // Graphs hold so much now.
  void graphs(uint64_t bytes) noexcept;
  // At the end: the figures, and what they are made of.
  void tell(Recorder& recorder, const GraphMemory& graphs) const noexcept;

 private:
  void raise() noexcept;

  mutable std::mutex mutex_;
  bool open_ = false;
  CUdevice device_ = 0;
  BesideLedgers ledgers_;
  footprint::Footprint footprint_;
  std::unordered_map<uint64_t, uint64_t> sizes_;  // of the allocations in the footprint
  uint64_t drivers_own_ = 0;                      // context, code and so on, which stay
  uint64_t graph_bytes_ = 0;
  uint64_t most_held_ = 0;
  uint64_t most_at_once_ = 0;  // of the footprint and of what is held
};

}  // namespace reprise
