#include "replay/memory/memory.h"

#include <algorithm>
#include <utility>

#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

namespace reprise::replay {

bool ensure_slot(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  if (!tensor.host.empty()) return true;
  if (!memory.host.allocate(tensor.size, &tensor.host)) return false;
  tensor.slot_read = {Lanes::kToDevice, memory.slot_reads};
  return true;
}

void ManagedMemory::touched(ResidentTensor& tensor, LaneUse use, bool wrote) noexcept {
  for (ResidentTensor* each : {&tensor, &mover_of(tensor)}) {
    each->uses.add(use.lane, use.position);
    if (wrote) each->wrote();
  }
}

// Copies that are out of date go first: the bytes of all are on the device.
bool ensure_slot_at_cost(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  if (ensure_slot(memory, tensor)) return true;
  std::vector<ResidentTensor*> copies;
  memory.for_each_mover([&](ResidentTensor& other) {
    if (other.is_resident() && !other.host.empty()) copies.push_back(&other);
  });
  std::sort(copies.begin(), copies.end(), [](const ResidentTensor* a, const ResidentTensor* b) {
    return std::pair(a->host_valid(), b->last_use) < std::pair(b->host_valid(), a->last_use);
  });
  return std::any_of(copies.begin(), copies.end(), [&](ResidentTensor* other) {
    drop_host_copy(memory, *other);
    return ensure_slot(memory, tensor);
  });
}

DigestCell take_cell(ManagedMemory& memory) noexcept {
  std::erase_if(memory.retired_cells, [&memory](const ManagedMemory::RetiredCell& retired) {
    DigestCell cell = retired.cell;
    const bool complete = memory.lanes.known_complete(retired.computed);
    if (complete) memory.digests.give_back(&cell);
    return complete;
  });
  return memory.digests.take();
}

void give_back_cell(ManagedMemory& memory, DigestCell* cell, LaneUse computed) noexcept {
  if (*cell == kNoDigest) return;
  if (memory.lanes.known_complete(computed)) return memory.digests.give_back(cell);
  memory.retired_cells.push_back({*cell, computed});
  *cell = kNoDigest;
}

void forget_slot_digest(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  give_back_cell(memory, &tensor.digest.cell, tensor.digest.computed);
}

void drop_host_copy(ManagedMemory& memory, ResidentTensor& tensor) noexcept {
  tensor.host_copy_dropped();
  forget_slot_digest(memory, tensor);
  if (tensor.host.empty()) return;
  memory.slot_reads = std::max(memory.slot_reads, tensor.slot_read.position);
  memory.host.release(&tensor.host);
}

namespace {

// Calls copy(device address, host address, bytes) for each run of bytes that lie together on both sides.
template <typename Copy>
CUresult for_each_run(ManagedMemory& memory, const ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                      Copy copy) noexcept {
  uint64_t offset = 0;
  for (const HostPiece& piece : tensor.host) {
    const uint64_t end = std::min(offset + piece.bytes, tensor.size);
    for (uint64_t host = piece.address; offset < end;) {
      CUdeviceptr device = 0;
      uint64_t bytes = end - offset;
      CUresult result = memory.safety->find_run(tensor, chunks, offset, &device, &bytes);
      if (result == CUDA_SUCCESS) result = copy(device, host, bytes);
      if (result != CUDA_SUCCESS) return result;
      offset += bytes;
      host += bytes;
    }
  }
  return CUDA_SUCCESS;
}

constexpr uint32_t kMostMisses = 3;  // of which each makes the departures without a comparison four times as many

// On the lane for digests. After an error its first kernels may be with the driver: they are a use of the tensor.
CUresult compute_digest(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                        DigestCell cell, LaneUse* computed) noexcept {
  Lanes& lanes = memory.lanes;
  const CUstream stream = lanes.stream(Lanes::kDigests);
  CUresult result = memory.digests.begin(cell, stream);
  for (uint64_t offset = 0; offset < tensor.size && result == CUDA_SUCCESS;) {
    CUdeviceptr device = 0;
    uint64_t bytes = tensor.size - offset;
    result = memory.safety->find_run(tensor, chunks, offset, &device, &bytes);
    if (result == CUDA_SUCCESS) result = memory.digests.add(cell, device, bytes, offset, stream);
    offset += bytes;
  }
  if (result == CUDA_SUCCESS) result = memory.digests.finish(cell, stream);
  *computed = {Lanes::kDigests, lanes.advance(Lanes::kDigests)};
  const CUresult marked = lanes.mark(Lanes::kDigests);
  if (result == CUDA_SUCCESS) result = marked;
  if (result != CUDA_SUCCESS) tensor.uses.add(computed->lane, computed->position);
  return result;
}

// The digest of bytes that are about to be copied out, beside the copy: what waits for the copy waits for both.
//
//     to-host   ...  waits  here | copy        | after both
//     digests            after here | digest |
CUresult compute_beside(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                        const LaneUses& after, SlotDigest* digest) noexcept {
  Lanes& lanes = memory.lanes;
  const LaneUse here{Lanes::kToHost, lanes.advance(Lanes::kToHost)};  // behind what the copy was told to wait for
  CUresult result = lanes.mark(Lanes::kToHost);
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kDigests, here);
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kDigests, after);
  if (result == CUDA_SUCCESS) result = lanes.enter_own();
  if (result == CUDA_SUCCESS) result = compute_digest(memory, tensor, chunks, digest->cell, &digest->computed);
  return result;
}

// From here on a position on the to-host lane says that the digests are done with the bytes, too: `computed`, and those
// that failed halfway. After an error the copy counts for nothing, because the bytes may not lose their place.
CUresult wait_for_digests(ManagedMemory& memory, ResidentTensor& tensor, LaneUse computed) noexcept {
  Lanes& lanes = memory.lanes;
  LaneUses reading;
  reading.add(computed.lane, computed.position);
  for (const LaneUse& use : tensor.uses) {
    if (use.lane == Lanes::kDigests) reading.add(use.lane, use.position);
  }
  if (tensor.uses.everything()) reading.add(Lanes::kDigests, lanes[Lanes::kDigests].issued);
  if (lanes.known_complete(reading)) return CUDA_SUCCESS;
  CUresult result = lanes.wait_on(Lanes::kToHost, reading);
  if (result != CUDA_SUCCESS) result = lanes.host_wait(reading);
  if (result != CUDA_SUCCESS) tensor.uses.merge(reading);
  lanes.advance(Lanes::kToHost);
  lanes.mark(Lanes::kToHost);
  return result;
}

}  // namespace

DigestCheck begin_comparison(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                             const LaneUses& after) noexcept {
  SlotDigest& known = tensor.digest;
  const bool comparable = known.cell != kNoDigest && known.skipped == 0 && !tensor.host.empty() &&
                          tensor.needs_copy() && memory.digests.available() &&
                          memory.lanes.known_complete(known.computed);
  DigestCheck comparison;
  if (!comparable || memory.lanes.wait_on(Lanes::kDigests, after) != CUDA_SUCCESS ||
      memory.lanes.enter_own() != CUDA_SUCCESS) {
    return comparison;
  }
  comparison.cell = take_cell(memory);
  if (comparison.cell == kNoDigest) return comparison;
  if (compute_digest(memory, tensor, chunks, comparison.cell, &comparison.computed) != CUDA_SUCCESS) {
    give_back_cell(memory, &comparison.cell, comparison.computed);
  }
  return comparison;
}

bool end_comparison(ManagedMemory& memory, ResidentTensor& tensor, const DigestCheck& comparison) noexcept {
  const bool known = memory.digests.available() && memory.lanes.fault() == CUDA_SUCCESS;
  if (!known || !memory.digests.equal(comparison.cell, tensor.digest.cell)) {
    tensor.digest.misses = std::min(tensor.digest.misses + 1, kMostMisses);
    tensor.digest.skipped = (1u << 2 * tensor.digest.misses) - 1;
    return false;
  }
  DigestCell cell = comparison.cell;
  memory.digests.give_back(&cell);
  tensor.digest.misses = 0;
  tensor.host_copy_found();
  memory.traffic.spared_bytes += tensor.size;
  return true;
}

CUresult copy_out_compared(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                           const LaneUses& after, DigestCheck* comparison, bool again) noexcept {
  SlotDigest& known = tensor.digest;
  if (known.skipped > 0) --known.skipped;
  SlotDigest beside;
  const bool skip = known.skipped > 0;
  if (!skip && comparison->cell == kNoDigest && again && memory.digests.available()) beside.cell = take_cell(memory);
  const bool begun = beside.cell != kNoDigest;
  if (begun && compute_beside(memory, tensor, chunks, after, &beside) != CUDA_SUCCESS) {
    give_back_cell(memory, &beside.cell, beside.computed);
  }
  CUresult result = copy_out(memory, tensor, chunks, after);  // forgets the digest of what was in the slot
  const CUresult read = wait_for_digests(memory, tensor, begun ? beside.computed : comparison->computed);
  if (result == CUDA_SUCCESS) result = read;
  if (result != CUDA_SUCCESS) give_back_cell(memory, &beside.cell, beside.computed);
  if (result != CUDA_SUCCESS) tensor.host_copy_dropped();
  if (result != CUDA_SUCCESS || skip) {
    give_back_cell(memory, &comparison->cell, comparison->computed);
    return result;
  }
  if (comparison->cell != kNoDigest) {
    beside.cell = std::exchange(comparison->cell, kNoDigest);
    beside.computed = comparison->computed;
  }
  known.cell = beside.cell;
  known.computed = beside.computed;
  return result;
}

CUresult copy_out(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                  const LaneUses& after) noexcept {
  Lanes& lanes = memory.lanes;
  forget_slot_digest(memory, tensor);
  CUresult result = lanes.wait_on(Lanes::kToHost, after);
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kToHost, tensor.slot_read);
  if (result == CUDA_SUCCESS) result = lanes.enter_own();  // waiting may have left it
  if (result == CUDA_SUCCESS) {
    result = for_each_run(memory, tensor, chunks, [&](CUdeviceptr device, uint64_t host, uint64_t bytes) {
      return driver().cuMemcpyDtoHAsync(reinterpret_cast<void*>(host), device, bytes, lanes.stream(Lanes::kToHost));
    });
  }
  const uint64_t position = lanes.advance(Lanes::kToHost);
  lanes.mark(Lanes::kToHost);
  if (result != CUDA_SUCCESS) {
    tensor.uses.add(Lanes::kToHost, position);  // the first pieces may be with the driver
    ++memory.traffic.failed_copies;
    return result;
  }
  tensor.host_copy_made({Lanes::kToHost, position});
  memory.traffic.offloaded_bytes += tensor.size;
  return CUDA_SUCCESS;
}

CUresult copy_in(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                 const LaneUses& after, LaneUse* done) noexcept {
  Lanes& lanes = memory.lanes;
  CUresult result = lanes.wait_on(Lanes::kToDevice, after);
  if (result == CUDA_SUCCESS) result = lanes.wait_on(Lanes::kToDevice, tensor.host_ready());
  if (result == CUDA_SUCCESS) result = lanes.enter_own();  // waiting may have left it
  if (result == CUDA_SUCCESS) {
    result = for_each_run(memory, tensor, chunks, [&](CUdeviceptr device, uint64_t host, uint64_t bytes) {
      const Performing moving(Performing::kMoves);
      return driver().cuMemcpyHtoDAsync(device, reinterpret_cast<const void*>(host), bytes,
                                        lanes.stream(Lanes::kToDevice));
    });
  }
  *done = {Lanes::kToDevice, lanes.advance(Lanes::kToDevice)};
  tensor.slot_read = *done;
  lanes.mark(Lanes::kToDevice);
  if (result != CUDA_SUCCESS) {
    ++memory.traffic.failed_copies;
    return result;
  }
  memory.traffic.reloaded_bytes += tensor.size;
  memory.traffic.reloaded_chunks += tensor.chunk_count;
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay
