#include "replay/memory/memory.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise::replay {

bool ensure_slot(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  return !tensor.host.empty() || memory.host.allocate(tensor.size, &tensor.host);
}

void drop_host_copy(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  tensor.host_valid = false;
  if (tensor.host.empty()) return;
  memory.slot_reads = memory.lanes[Lanes::kToDevice].issued;
  memory.host.release(&tensor.host);
}

CUresult copy_out(ManagedMemory& memory, ResidentTensor& tensor, const LaneUses& after) noexcept {
  Lanes& lanes = memory.lanes;
  CUresult result = lanes.wait_on(Lanes::kToHost, after);
  // The slot may have belonged to another tensor before, whose reload still reads it.
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kToHost, LaneUse{Lanes::kToDevice, memory.slot_reads});
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kToHost, tensor.slot_read);
  if (result == CUDA_SUCCESS) result = lanes.enter_own();  // waiting may have left it
  uint64_t offset = 0;
  for (const HostPiece& piece : tensor.host) {
    if (result != CUDA_SUCCESS || offset >= tensor.size) break;
    const uint64_t bytes = std::min(piece.bytes, tensor.size - offset);
    result = driver().cuMemcpyDtoHAsync(reinterpret_cast<void*>(piece.address), tensor.base + offset, bytes,
                                        lanes.stream(Lanes::kToHost));
    offset += bytes;
  }
  const uint64_t position = lanes.advance(Lanes::kToHost);
  lanes.mark(Lanes::kToHost);
  if (result != CUDA_SUCCESS) {
    tensor.uses.add(Lanes::kToHost, position);  // the first pieces may be with the driver
    ++memory.traffic.failed_copies;
    return result;
  }
  tensor.host_valid = true;
  tensor.host_ready = {Lanes::kToHost, position};
  memory.traffic.offloaded_bytes += tensor.size;
  return CUDA_SUCCESS;
}

CUresult copy_in(ManagedMemory& memory, ResidentTensor& tensor, const LaneUses& after, LaneUse* done) noexcept {
  Lanes& lanes = memory.lanes;
  CUresult result = lanes.wait_on(Lanes::kToDevice, after);
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kToDevice, tensor.host_ready);
  if (result == CUDA_SUCCESS) result = lanes.enter_own();  // waiting may have left it
  uint64_t offset = 0;
  for (const HostPiece& piece : tensor.host) {
    if (result != CUDA_SUCCESS || offset >= tensor.size) break;
    const uint64_t bytes = std::min(piece.bytes, tensor.size - offset);
    result = driver().cuMemcpyHtoDAsync(tensor.base + offset, reinterpret_cast<const void*>(piece.address), bytes,
                                        lanes.stream(Lanes::kToDevice));
    offset += bytes;
  }
  *done = {Lanes::kToDevice, lanes.advance(Lanes::kToDevice)};
  tensor.slot_read = *done;
  lanes.mark(Lanes::kToDevice);
  if (result != CUDA_SUCCESS) {
    ++memory.traffic.failed_copies;
    return result;
  }
  memory.traffic.reloaded_bytes += tensor.size;
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
