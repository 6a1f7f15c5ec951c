#include "replay/measure/link_rates.h"

#include <algorithm>
#include <array>

#include "preload/driver/driver.h"
#include "replay/base/run_log.h"

namespace reprise::replay {
namespace {

constexpr int kTries = 3;
constexpr uint64_t kBytesPerTry = 8u << 20;
constexpr uint64_t kSmallBytes = 64;

// Time of copies of `bytes` that add up to at least `total`; 0 when one fails.
template <typename Copy>
uint64_t timed(CUstream stream, uint64_t bytes, uint64_t total, Copy copy) noexcept {
  const uint64_t start = RunLogWriter::now_ns();
  for (uint64_t moved = 0; moved < total; moved += bytes) {
    if (copy(bytes) != CUDA_SUCCESS) return 0;
  }
  if (driver().cuStreamSynchronize(stream) != CUDA_SUCCESS) return 0;
  return std::max<uint64_t>(RunLogWriter::now_ns() - start, 1);
}

template <typename Copy>
uint64_t median_ns(CUstream stream, uint64_t bytes, uint64_t total, Copy copy) noexcept {
  std::array<uint64_t, kTries> times{};
  timed(stream, bytes, bytes, copy);  // the first touch of the memory does not count
  for (uint64_t& time : times) time = timed(stream, bytes, total, copy);
  std::sort(times.begin(), times.end());
  return times.front() == 0 ? 0 : times[kTries / 2];
}

uint64_t rate(uint64_t bytes, uint64_t ns) noexcept {
  return ns == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(ns));
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
  if (memory.mappings.map(device, {chunk}) == CUDA_SUCCESS) {
    if (memory.host.allocate(chunk_bytes, &slot) && slot.size() == 1) {
      void* const host = reinterpret_cast<void*>(slot[0].address);
      const CUstream in = memory.lanes.stream(Lanes::kToDevice);
      const CUstream out = memory.lanes.stream(Lanes::kToHost);
      const uint64_t total = std::max(kBytesPerTry / chunk_bytes * chunk_bytes, chunk_bytes);
      const auto to_device = [&](uint64_t bytes) { return driver().cuMemcpyHtoDAsync(device, host, bytes, in); };
      const auto to_host = [&](uint64_t bytes) { return driver().cuMemcpyDtoHAsync(host, device, bytes, out); };
      rates.to_device = rate(total, median_ns(in, chunk_bytes, total, to_device));
      rates.to_host = rate(total, median_ns(out, chunk_bytes, total, to_host));
      rates.latency_ns = median_ns(in, kSmallBytes, kSmallBytes, to_device);
    }
    // A measurement that ended early has left copies behind, which would find nothing at these addresses.
    const bool ended_early = rates.to_device == 0 || rates.to_host == 0 || rates.latency_ns == 0;
    if (ended_early && memory.lanes.synchronize() != CUDA_SUCCESS) return {};
    memory.mappings.unmap(device);
  }
  if (!slot.empty()) memory.host.release(&slot);
  memory.chunks.give_back(chunk);
  return rates;
}

}  // namespace reprise::replay
