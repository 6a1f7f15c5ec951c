// Virtual memory management: physical memory is a range of a memory file, a mapping is an mmap of it, so two mappings
// of one handle are the same bytes and an unmapped address faults. Callers: vmm_api.cpp, pointer_api.cpp, memory.cpp.
#pragma once
#include <cstdint>
#include <memory>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/handles.h"

namespace reprise::sim {

class Device;

// Lives while a handle or a mapping holds it, then gives its bytes back.
struct PhysicalChunk {
  ~PhysicalChunk();
  int file = -1;
  bool own_file = false;  // shareable: a file of its own
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Device* device = nullptr;  // nullptr: on the host
  bool charged = false;      // to the device's account
  CUmemAllocationProp properties = {};
  std::atomic<uint32_t> handle_references{1};
};

using ChunkTable = HandleTable<PhysicalChunk, CUmemGenericAllocationHandle, HandleKind::memory>;
ChunkTable& chunks();

// Does the operating system let us have any?
bool has_physical_memory();
// Makes physical memory and charges the device.
CUresult create_chunk(uint64_t bytes, const CUmemAllocationProp& properties, std::shared_ptr<PhysicalChunk>* chunk);
// ... from another handle's file descriptor, which stays the caller's.
CUresult import_chunk(int file, std::shared_ptr<PhysicalChunk>* chunk);

// Address reservations. reserve_range() honours `hint` when that range is free. 0: none to be had.
uint64_t reserve_range(uint64_t bytes, uint64_t alignment, uint64_t hint);
CUresult free_range(uint64_t base, uint64_t bytes);
bool is_reserved(uint64_t address);

// These take the time that REPRISE_SIM_MAP says, of the calling thread.
CUresult map_chunk(uint64_t base, uint64_t bytes, const std::shared_ptr<PhysicalChunk>& chunk);
CUresult set_access(uint64_t base, uint64_t bytes, const CUmemAccessDesc* descriptors, size_t count);
// The range must consist of whole mappings.
CUresult unmap_chunks(uint64_t base, uint64_t bytes);

}  // namespace reprise::sim
