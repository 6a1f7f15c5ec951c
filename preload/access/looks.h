// Looks into buffers that may hold addresses which no copy told of: tables that kernels or host functions fill. While
// the program is recorded or served on demand, a launch's operands are read back and scanned before it is submitted, if
// they may have changed; docs/decisions/0024 says which and why. Callers: pointees; hooks of copies, submit().
#pragma once
#include <cstdint>

#include "preload/access/command_builder.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// Some accesses of a command: those of its parameters (depth 0), or what these point to (1), ...
struct LookRange {
  uint32_t begin;
  uint32_t end;
  uint32_t depth;
  uint64_t reader;  // the kernel or graph
};

// Reads what has to be read of them, and records the addresses that it holds (pointees.h). What cannot be read makes
// the command opaque where addresses were there before.
void look(CommandBuilder& builder, const LookRange& range) noexcept;

// `bytes` from `from` on, in memory that the host can read (pinned, managed or pageable), are copied to `to`: records
// the addresses in them. Waits, for a while, for work that may still write them.
void record_host_copy(uint64_t to, uint64_t from, uint64_t bytes) noexcept;

// The command was submitted: what it writes may hold other addresses from now on.
void mark_submitted(const CommandBuilder& builder) noexcept;

}  // namespace reprise
