// Pointers that lie in memory: tables of addresses that copies bring (batched GEMM, grouped layers) or that looks.h
// finds in buffers that kernels filled. A kernel that gets such a table touches what the table points to. Callers:
// hooks of copies, memsets, value writes and frees; argument scanning; looks.
#pragma once
#include <cstdint>

#include "preload/access/command_builder.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// `bytes` of host memory at `data`, of any number, are what stands at `address` now (in a known allocation or not):
// remembers the addresses of device memory among the 8-byte aligned words, of freed memory, too: it may come back
// there. With `replace`, forgets what stood there before. Returns how many addresses of live memory it found.
struct Payload {
  const void* data;
  uint64_t bytes;
  bool write_combined = false;
  bool replace = true;
};
uint64_t record_payload(uint64_t address, const Payload& payload) noexcept;

// The range was overwritten with something that holds no pointers (memset).
void mark_overwritten(uint64_t address, uint64_t bytes) noexcept;

// 32 bits were written there, which may be half of an address.
void mark_half_written(uint64_t address) noexcept;

// Something that cannot be seen was copied to the address.
void mark_unknown(uint64_t address) noexcept;

// A copy takes the pointers along, and what is not known of the source.
void record_device_copy(uint64_t to, uint64_t from, uint64_t bytes) noexcept;

// A number that changes when anything is recorded of the allocation's bytes.
uint64_t pointees_version(uint64_t allocation) noexcept;

void forget_pointees(const Allocation& allocation) noexcept;

// Adds what the command's accesses point to, and what that points to, as accesses with unknown mode. `reader`: the
// kernel or graph, for looks.h.
void add_pointees(CommandBuilder& builder, uint64_t reader) noexcept;

// In place of add_pointees(), where the command follows no address in memory.
void without_pointees(CommandBuilder& builder) noexcept;

// add_pointees() once more, for a blind command that the handler did not take (OrderHandler::kLookFirst).
void look_again(CommandBuilder& builder) noexcept;

}  // namespace reprise
