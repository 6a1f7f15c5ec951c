// Physical chunks and address ranges of the driver's virtual memory management, with owners that unmap and release.
// Callers: sections 2 and 3, single_checks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "tools/lab/probe/measure/device.h"

namespace reprise::probe {

using Chunk = Owner<CUmemGenericAllocationHandle>;

CUmemAllocationProp device_memory(const Device& device);
// On the NUMA node that is nearest to the device, as the driver says.
CUmemAllocationProp host_memory(const Device& device);

Result<size_t> granularity(const Device& device, const CUmemAllocationProp& properties,
                           CUmemAllocationGranularity_flags kind);
Result<Chunk> make_chunk(const Device& device, const CUmemAllocationProp& properties, size_t bytes);
Result<std::vector<Chunk>> make_chunks(const Device& device, const CUmemAllocationProp& properties, size_t bytes,
                                       size_t count);

// A reserved range of addresses; chunks of one size are mapped into it one after the other.
class AddressRange {
 public:
  static Result<AddressRange> reserve(const Device& device, size_t bytes, size_t alignment = 0);
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&&) = delete;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  CUdeviceptr address() const { return address_; }
  // Maps a chunk at the end of what is mapped. Not accessible before allow().
  Status map(const Chunk& chunk, size_t bytes);
  // Another chunk in the place of the `index`th: unmap, map, access.
  Status replace(size_t index, const Chunk& chunk) const;
  // Access for the device to bytes [offset, offset+bytes).
  Status allow(size_t offset, size_t bytes, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) const;
  // One call over the whole mapped range, or one for each chunk.
  Status unmap(bool each_chunk);

 private:
  AddressRange(const Device& device, CUdeviceptr address, size_t bytes)
      : device_(&device), address_(address), bytes_(bytes) {}
  const Device* device_;
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
  size_t chunk_bytes_ = 0;
};

// Reserves a range, maps `chunks` in the order of `order` (indices; empty: as they stand) and allows access at once.
Result<AddressRange> map_view(const Device& device, std::span<const Chunk> chunks, size_t chunk_bytes,
                              std::span<const size_t> order = {});

}  // namespace reprise::probe
