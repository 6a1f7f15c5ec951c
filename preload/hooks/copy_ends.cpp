#include "preload/hooks/copy_ends.h"

#include "preload/access/looks.h"
#include "preload/access/pointees.h"
#include "preload/driver/driver.h"

namespace reprise {

Place place_of(CUdeviceptr address) noexcept {
  Allocation allocation;
  if (find_allocation(address, &allocation)) {
    return allocation.origin == trace::Origin::host ? Place::pinned : Place::device;
  }
  unsigned type = 0;
  if (driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) {
    return Place::pageable;
  }
  return type == CU_MEMORYTYPE_HOST ? Place::pinned : Place::device;
}

void touch_source(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes, Place place) noexcept {
  if (place != Place::device) builder.command.host_source = reinterpret_cast<const void*>(address);
  if (place == Place::pageable || bytes == 0) return;
  hold_to_memory(builder, address, bytes);
  builder.touch(address, bytes, trace::kAccessRead);
}

void touch_target(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes, Place place, bool dense) noexcept {
  if (place != Place::device) {
    builder.command.host_destination = reinterpret_cast<void*>(address);
    builder.flag(trace::kOpHostVisible);
  }
  if (place == Place::pageable || bytes == 0) return;
  hold_to_memory(builder, address, bytes);
  builder.touch(address, bytes, dense ? trace::kAccessWrite : trace::kAccessRead | trace::kAccessWrite);
}

void classify(CommandBuilder& builder, Place from, Place to) noexcept {
  const bool from_device = from == Place::device;
  const bool to_device = to == Place::device;
  builder.command.op = from_device
                           ? (to_device ? trace::OpKind::copy_device_to_device : trace::OpKind::copy_device_to_host)
                           : (to_device ? trace::OpKind::copy_host_to_device : trace::OpKind::copy_host_to_host);
  builder.command.host_pageable = from == Place::pageable || to == Place::pageable;
}

void follow_pointers(CUdeviceptr to, Place to_place, CUdeviceptr from, Place from_place, uint64_t bytes) noexcept {
  if (to_place == Place::pageable || bytes == 0) return;
  Allocation source;
  const bool managed = find_allocation(from, &source) && source.origin == trace::Origin::managed;
  if (from_place == Place::device && !managed) return record_device_copy(to, from, bytes);
  // Pinned memory that the host writes is looked at when it is used.
  if (to_place == Place::device) record_host_copy(to, from, bytes);
}

}  // namespace reprise
