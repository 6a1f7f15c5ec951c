#include "replay/measure/link_rates.h"

#include "preload/measure/link_timer.h"

namespace reprise::replay {
namespace {

uint64_t digest_rate(ManagedMemory& memory, CUdeviceptr device, uint64_t bytes) noexcept {
  Digests& digests = memory.digests;
  if (!digests.available()) return 0;
  DigestCell cell = digests.take();
  const CUstream stream = memory.lanes.stream(Lanes::kToHost);
  const auto compute = [&](uint64_t count) {
    CUresult result = digests.begin(cell, stream);
    if (result == CUDA_SUCCESS) result = digests.add(cell, device, count, 0, stream);
    return result == CUDA_SUCCESS ? digests.finish(cell, stream) : result;
  };
  const uint64_t measured = LinkTimer(stream).rate(bytes, compute);
  digests.give_back(&cell);
  return measured;
}

}  // namespace

LinkRates measure_link_rates(ManagedMemory& memory) noexcept {
  LinkRates rates;
  const uint64_t chunk_bytes = memory.chunks.chunk_bytes();
  CUresult refused = CUDA_SUCCESS;
  const ChunkIndex chunk = memory.chunks.take_free(&refused);
  if (chunk == kNoChunk) return rates;
  // Far from what plans use: should the driver refuse to unmap it, it is in nobody's way.
  const CUdeviceptr device = memory.arena.plan.base + memory.arena.plan.bytes - chunk_bytes;
  HostSlot slot;
  bool ended_early = true;
  if (memory.mappings.map(device, {chunk}) == CUDA_SUCCESS) {
    if (memory.host.allocate(chunk_bytes, &slot) && slot.size() == 1) {
      ended_early = !measure_copies({device, reinterpret_cast<void*>(slot[0].address), chunk_bytes,
                                     memory.lanes.stream(Lanes::kToDevice), memory.lanes.stream(Lanes::kToHost)},
                                    &rates);
      rates.digest_bytes_per_s = digest_rate(memory, device, chunk_bytes);
    }
    // A measurement that ended early has left work behind, which would find nothing at these addresses.
    const bool left_work = ended_early || rates.digest_bytes_per_s == 0;
    if (left_work && memory.lanes.synchronize() != CUDA_SUCCESS) return {};
    if (!ended_early) {
      rates.remap_ns_per_chunk = remap_ns([&] {
        const CUresult result = memory.mappings.unmap(device);
        return result == CUDA_SUCCESS ? memory.mappings.map(device, {chunk}) : result;
      });
    }
    memory.mappings.unmap(device);
  }
  if (!slot.empty()) memory.host.release(&slot);
  memory.chunks.give_back(chunk);
  return rates;
}

}  // namespace reprise::replay
