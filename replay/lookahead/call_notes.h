// Notes for the run log what calls touched while no plan was in force, so that the report can tell how little could
// have been moved for the same calls. The first calls alone. Caller: LookAhead.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/issue/shared.h"
#include "replay/lookahead/mover.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

class CallNotes {
 public:
  CallNotes(RunLogWriter* log, ManagedMemory* memory) noexcept : log_(*log), memory_(*memory) {}

  // Calls follow each other from here on; what is where.
  void begin();
  // The next call, and what it touches of how many chunks; a free.
  void call(const std::vector<std::pair<Mover, uint64_t>>& touched);
  void freed(Mover mover);
  // Writes what it has, to which belongs what has come back by now.
  void end();

 private:
  static constexpr uint64_t kMostCalls = 16384;  // that are noted
  static constexpr size_t kMostText = 8192;      // of a line

  bool is_on() const noexcept { return begun_ && calls_ < kMostCalls && log_.enabled(); }
  std::string name(Mover mover, uint64_t chunks);

  RunLogWriter& log_;
  ManagedMemory& memory_;
  std::unordered_map<Mover, uint64_t> numbers_;  // of those that live
  uint64_t named_ = 0;
  std::string there_, away_, text_;
  bool begun_ = false;
  bool first_ = false;  // no line was written since begin()
  uint64_t limit_ = 0;  // of chunks
  uint64_t came_ = 0;   // chunks that had come back when the line began
  uint64_t calls_ = 0;
};

inline Mover mover_of(const ResidentTensor& tensor) noexcept {
  return tensor.allocation != 0 ? mover_of_allocation(tensor.allocation) : mover_of_block(tensor.base);
}

}  // namespace reprise::replay
