// The live allocations of the program by address: which of them does a pointer point into? Hooks and the defragmenter
// write it, argument scanning reads it on every launch. Reads take no lock, allocate nothing and make no system call.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/trace/format.h"

namespace reprise {

// What is known of an allocation besides its range: one word of the map, which is copied as it is.
struct AllocationMarks {
  trace::Origin origin = trace::Origin::alloc;
  uint16_t device = 0;
  uint8_t pool = 0;                 // that counts it (pool_use.h); 0: none
  bool holds_pointers : 1 = false;  // it holds device addresses (pointees.h)
  bool written : 1 = false;         // a kernel may have written to it since it was last scanned (looks.h)
  bool unknown : 1 = false;         // bytes were copied into it from where they could not be scanned
  bool write_combined : 1 = false;  // host memory that is slow to read
  bool hidden : 1 = false;          // kernels may reach it without a pointer in their parameters
  uint16_t unused = 0;
};

struct Allocation : AllocationMarks {
  uint64_t id = 0;  // from 1, never used again
  uint64_t address = 0;
  uint64_t size = 0;
};

// Ids of allocations, one sequence for all kinds of memory.
uint64_t next_allocation_id() noexcept;

// Enters a new allocation. What it overlaps was freed without being seen, and is forgotten. false: out of memory.
bool insert_allocation(const Allocation& allocation) noexcept;

// Forgets the allocation that starts at `address`; false when there is none. *allocation (may be nullptr) is what it
// was.
bool forget_allocation(uint64_t address, Allocation* allocation) noexcept;

// The allocation that `address` points into (its start included, one past its end not). `word` may be any number.
bool find_allocation(uint64_t word, Allocation* allocation) noexcept;

// Changes a mark of the allocation that starts at `address`.
void set_holds_pointers(uint64_t address, bool holds) noexcept;
void set_hidden(uint64_t address) noexcept;
void set_written(uint64_t address, bool written) noexcept;
void set_unknown(uint64_t address, bool unknown) noexcept;
// Something that cannot be seen may have written to any of them.
void mark_all_written() noexcept;

// Every device allocation ever seen lies in [low, low + span).
struct AddressRange {
  uint64_t low = 0;
  uint64_t span = 0;
  bool contains(uint64_t word) const noexcept { return word - low < span; }
};
AddressRange device_addresses() noexcept;
// Is or was memory that Reprise may move there, or close by? It may come back.
bool was_movable(uint64_t word) noexcept;

// Live allocations and their bytes, of device memory (alloc, pitched, async, pool).
struct LiveMemory {
  uint64_t count;
  uint64_t bytes;
};
LiveMemory live_device_memory() noexcept;

bool any_hidden() noexcept;
// Those marked hidden: up to `capacity` ids, returns how many there are.
uint32_t hidden_allocations(Allocation* list, uint32_t capacity) noexcept;

inline bool is_device_memory(trace::Origin origin) noexcept {
  return origin == trace::Origin::alloc || origin == trace::Origin::pitched || origin == trace::Origin::async ||
         origin == trace::Origin::pool;
}

// The host can read it in place.
inline bool is_host_readable(trace::Origin origin) noexcept {
  return origin == trace::Origin::host || origin == trace::Origin::managed;
}

}  // namespace reprise
