// Pointers that lie in device memory: tables of addresses that the host copies over (batched GEMM, grouped layers). A
// kernel that gets such a table touches what the table points to. Callers: hooks of copies, memsets, value writes and
// frees; argument scanning.
#pragma once
#include <cstdint>

#include "preload/access/command_builder.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// Larger payloads are data, not pointer tables; scanning them would cost more than the copy.
inline constexpr uint64_t kMaxScannedBytes = 1 << 20;

// `bytes` of host memory at `data` were copied to `address` (in a known allocation or not): remembers the live device
// addresses among the 8-byte aligned words, forgets what stood there before.
void record_payload(uint64_t address, const void* data, uint64_t bytes) noexcept;

// The range was overwritten with something that holds no pointers (memset).
void mark_overwritten(uint64_t address, uint64_t bytes) noexcept;

// A device copy takes the pointers along.
void record_device_copy(uint64_t to, uint64_t from, uint64_t bytes) noexcept;

void forget_pointees(const Allocation& allocation) noexcept;

// Adds what the command's accesses point to, and what that points to, as accesses with unknown mode.
void add_pointees(CommandBuilder& builder) noexcept;

}  // namespace reprise
