// A command while a hook, or a scan of a launch, finds out what the call touches. Callers: hooks, arguments, graphs,
// pointees; barriers, for opaque work.
#pragma once
#include "preload/calls/command.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// Device memory of this size or more is data: it is only looked into where something unknown was copied to it.
inline constexpr uint64_t kLargestLook = 1 << 20;

// A command under construction with room for its accesses. The array is the caller's (stack memory).
class CommandBuilder {
 public:
  CommandBuilder(trace::OpKind op, const char* name, CUstream stream, Access* room, uint32_t capacity) noexcept;

  // Notes that `bytes` from `address` on are read or written (0: up to the allocation's end). An address that belongs
  // to no known allocation is not noted; returns whether it does. Too many accesses make the command opaque.
  bool touch(CUdeviceptr address, uint64_t bytes, uint32_t mode,
             uint32_t parameter_offset = trace::kNoParameter) noexcept;
  void touch(const Allocation& allocation, CUdeviceptr address, uint64_t bytes, uint32_t mode,
             uint32_t parameter_offset) noexcept;
  // Of memory without an address, known by its id alone, such as the variables of a module: read and written.
  void touch_unplaced(uint64_t allocation) noexcept;
  bool touches(uint64_t allocation) const noexcept;
  void flag(trace::OpFlags flags) noexcept { command.flags = static_cast<uint16_t>(command.flags | flags); }

  Command command{};
  bool holds_pointers = false;  // one of the accesses is to memory that holds device addresses
  bool unscanned = false;       // ... to memory that may hold addresses that nothing has told of (looks.h)
  bool host_readable = false;   // ... to memory that can be looked at where it is
  bool fresh_writes = false;    // ... writes memory that was not marked as written before
  bool refused = false;         // the driver would refuse it, were the program's memory where it is without us
  uint32_t named_accesses = 0;  // of a launch: those that its parameters name, without what pointer tables add
  uint64_t named_bytes = 0;     // ... and what of command.operand_bytes they are
  uint64_t reader = 0;          // the kernel or graph, for looks.h
  Access* const accesses;
  const uint32_t capacity;
};

// Tells the recorder about opaque work: forwarded, and what it touches is not known.
void record_opaque(const char* name) noexcept;

}  // namespace reprise
