#include "tools/lab/probe/measure/mapping.h"

namespace reprise::probe {

CUmemAllocationProp device_memory(const Device& device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.handle();
  return properties;
}

CUmemAllocationProp host_memory(const Device& device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  const int node = device.attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  properties.location.id = node < 0 ? 0 : node;
  return properties;
}

Result<size_t> granularity(const Device& device, const CUmemAllocationProp& properties,
                           CUmemAllocationGranularity_flags kind) {
  size_t bytes = 0;
  PROBE_CALL(device.driver(), cuMemGetAllocationGranularity, &bytes, &properties, kind);
  return bytes;
}

Result<Chunk> make_chunk(const Device& device, const CUmemAllocationProp& properties, size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  PROBE_CALL(device.driver(), cuMemCreate, &handle, bytes, &properties, 0);
  return Chunk(handle, device.driver().cuMemRelease);
}

Result<std::vector<Chunk>> make_chunks(const Device& device, const CUmemAllocationProp& properties, size_t bytes,
                                       size_t count) {
  std::vector<Chunk> chunks;
  chunks.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto chunk = make_chunk(device, properties, bytes);
    if (!chunk.ok()) return chunk.status();
    chunks.push_back(std::move(chunk.value()));
  }
  return Result<std::vector<Chunk>>(std::move(chunks));
}

Result<AddressRange> AddressRange::reserve(const Device& device, size_t bytes, size_t alignment) {
  CUdeviceptr address = 0;
  PROBE_CALL(device.driver(), cuMemAddressReserve, &address, bytes, alignment, 0, 0);
  return AddressRange(device, address, bytes);
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : device_(other.device_),
      address_(std::exchange(other.address_, 0)),
      bytes_(other.bytes_),
      mapped_(std::exchange(other.mapped_, 0)),
      chunk_bytes_(other.chunk_bytes_) {}

AddressRange::~AddressRange() {
  if (address_ == 0) return;
  if (mapped_ > 0 && !unmap(false).ok()) unmap(true).ok();  // in one call, for there may be a million
  device_->driver().cuMemAddressFree(address_, bytes_);
}

Status AddressRange::map(const Chunk& chunk, size_t bytes) {
  PROBE_CALL(device_->driver(), cuMemMap, address_ + mapped_, bytes, 0, chunk.get(), 0);
  mapped_ += bytes;
  chunk_bytes_ = bytes;
  return Status::success();
}

Status AddressRange::replace(size_t index, const Chunk& chunk) const {
  const size_t offset = index * chunk_bytes_;
  PROBE_CALL(device_->driver(), cuMemUnmap, address_ + offset, chunk_bytes_);
  PROBE_CALL(device_->driver(), cuMemMap, address_ + offset, chunk_bytes_, 0, chunk.get(), 0);
  return allow(offset, chunk_bytes_);
}

Status AddressRange::allow(size_t offset, size_t bytes, CUmemAccess_flags flags) const {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_->handle();
  access.flags = flags;
  PROBE_CALL(device_->driver(), cuMemSetAccess, address_ + offset, bytes, &access, 1);
  return Status::success();
}

Status AddressRange::unmap(bool each_chunk) {
  const size_t step = each_chunk ? chunk_bytes_ : mapped_;
  while (mapped_ > 0) {
    PROBE_CALL(device_->driver(), cuMemUnmap, address_ + mapped_ - step, step);
    mapped_ -= step;
  }
  return Status::success();
}

Result<AddressRange> map_view(const Device& device, std::span<const Chunk> chunks, size_t chunk_bytes,
                              std::span<const size_t> order) {
  auto range = AddressRange::reserve(device, chunks.size() * chunk_bytes);
  if (!range.ok()) return range;
  for (size_t i = 0; i < chunks.size(); ++i) {
    PROBE_TRY(range.value().map(chunks[order.empty() ? i : order[i]], chunk_bytes));
  }
  PROBE_TRY(range.value().allow(0, chunks.size() * chunk_bytes));
  return range;
}

}  // namespace reprise::probe
