#include "replay/measure/link_rates.h"

#include <algorithm>
#include <array>

#include "preload/driver/driver.h"
#include "replay/base/run_log.h"

namespace reprise::replay {
namespace {

constexpr int kTries = 3;
constexpr int kRemaps = 9;
constexpr uint64_t kBytesPerTry = 64u << 20;
constexpr uint64_t kTimePerTry = 20'000'000;  // ns: slower links take fewer bytes, a chunk at least
constexpr uint64_t kSmallBytes = 64;

// Measures what runs on one stream of the current context.
class LinkTimer {
 public:
  explicit LinkTimer(CUstream stream) noexcept : stream_(stream) {
    if (driver().cuEventCreate(&begin_, CU_EVENT_DEFAULT) != CUDA_SUCCESS) begin_ = nullptr;
    if (driver().cuEventCreate(&end_, CU_EVENT_DEFAULT) != CUDA_SUCCESS) end_ = nullptr;
  }
  ~LinkTimer() {
    for (CUevent event : {begin_, end_}) {
      if (event != nullptr) driver().cuEventDestroy(event);
    }
  }
  LinkTimer(const LinkTimer&) = delete;
  LinkTimer& operator=(const LinkTimer&) = delete;

  CUstream stream() const noexcept { return stream_; }

  // Time of copies of `bytes` that add up to at least `total`; 0 when a call fails.
  template <typename Copy>
  uint64_t timed(uint64_t bytes, uint64_t total, Copy copy) const noexcept {
    if (begin_ == nullptr || end_ == nullptr) return 0;
    if (driver().cuEventRecord(begin_, stream_) != CUDA_SUCCESS) return 0;
    for (uint64_t moved = 0; moved < total; moved += bytes) {
      if (copy(bytes) != CUDA_SUCCESS) return 0;
    }
    float ms = 0;
    const bool good = driver().cuEventRecord(end_, stream_) == CUDA_SUCCESS &&
                      driver().cuEventSynchronize(end_) == CUDA_SUCCESS &&
                      driver().cuEventElapsedTime(&ms, begin_, end_) == CUDA_SUCCESS;
    return good ? std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(ms) * 1e6), 1) : 0;
  }

  template <typename Copy>
  uint64_t median_ns(uint64_t bytes, uint64_t total, Copy copy) const noexcept {
    std::array<uint64_t, kTries> times{};
    for (uint64_t& time : times) time = timed(bytes, total, copy);
    std::sort(times.begin(), times.end());
    return times.front() == 0 ? 0 : times[kTries / 2];
  }

  // Bytes per second of copies of `bytes`.
  template <typename Copy>
  uint64_t rate(uint64_t bytes, Copy copy) const noexcept {
    // The first touch of the memory does not count, nor what passes while a link that was idle wakes up.
    uint64_t last = 0;
    uint64_t passed = 0;
    for (uint64_t moved = 0; moved < 2 * bytes || moved < kBytesPerTry; moved += bytes) {
      if (moved >= 2 * bytes && passed > kTimePerTry) break;
      last = timed(bytes, bytes, copy);
      if (last == 0) return 0;
      passed += last;
    }
    const uint64_t copies = std::clamp<uint64_t>(kTimePerTry / last, 1, std::max<uint64_t>(kBytesPerTry / bytes, 1));
    const uint64_t ns = median_ns(bytes, copies * bytes, copy);
    return ns == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(copies * bytes) * 1e9 / static_cast<double>(ns));
  }

 private:
  const CUstream stream_;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

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

// By the host's clock, as it is the host that waits: the median, 0 when a call fails.
uint64_t remap_ns(ManagedMemory& memory, CUdeviceptr device, ChunkIndex chunk) noexcept {
  std::array<uint64_t, kRemaps> times{};
  for (uint64_t& time : times) {
    const uint64_t begin = RunLogWriter::now_ns();
    if (memory.mappings.unmap(device) != CUDA_SUCCESS || memory.mappings.map(device, {chunk}) != CUDA_SUCCESS) return 0;
    time = RunLogWriter::now_ns() - begin;
  }
  std::sort(times.begin(), times.end());
  return std::max<uint64_t>(times[kRemaps / 2], 1);
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
      const LinkTimer in(memory.lanes.stream(Lanes::kToDevice));
      const LinkTimer out(memory.lanes.stream(Lanes::kToHost));
      const auto to_device = [&](uint64_t bytes) {
        return driver().cuMemcpyHtoDAsync(device, host, bytes, in.stream());
      };
      const auto to_host = [&](uint64_t bytes) {
        return driver().cuMemcpyDtoHAsync(host, device, bytes, out.stream());
      };
      rates.h2d_bytes_per_s = in.rate(chunk_bytes, to_device);
      rates.d2h_bytes_per_s = out.rate(chunk_bytes, to_host);
      in.timed(kSmallBytes, kSmallBytes, to_device);
      rates.latency_ns = in.median_ns(kSmallBytes, kSmallBytes, to_device);
      rates.digest_bytes_per_s = digest_rate(memory, device, chunk_bytes);
    }
    // A measurement that ended early has left copies behind, which would find nothing at these addresses.
    const bool ended_early = rates.h2d_bytes_per_s == 0 || rates.d2h_bytes_per_s == 0 || rates.latency_ns == 0;
    if (ended_early && memory.lanes.synchronize() != CUDA_SUCCESS) return {};
    if (!ended_early) rates.remap_ns_per_chunk = remap_ns(memory, device, chunk);
    memory.mappings.unmap(device);
  }
  if (!slot.empty()) memory.host.release(&slot);
  memory.chunks.give_back(chunk);
  return rates;
}

}  // namespace reprise::replay
