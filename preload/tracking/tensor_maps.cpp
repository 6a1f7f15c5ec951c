#include "preload/tracking/tensor_maps.h"

#include <atomic>
#include <cstring>
#include <new>

#include "preload/trace/signature.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

struct KnownDescriptor {
  uint8_t bytes[kTensorMapBytes];
  std::atomic<CUdeviceptr> address;
};
constexpr uint64_t kMaxKnown = 1 << 18;  // 36 MiB of descriptors; programs encode each tensor's once or per call

constinit HandleMap known;
constinit std::atomic<bool> overflowed{false};

// Two different descriptors with one hash: the second probes on.
constexpr uint64_t kProbes = 4;
uint64_t hash_of(const uint8_t* bytes, uint64_t probe) {
  return trace::hash_bytes(bytes, kTensorMapBytes, probe + 1) | 1;
}

}  // namespace

void insert_tensor_map(const CUtensorMap& map, CUdeviceptr address) noexcept {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&map);
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    const uint64_t hash = hash_of(bytes, probe);
    auto* entry = reinterpret_cast<KnownDescriptor*>(known.find(hash));
    if (entry != nullptr && std::memcmp(entry->bytes, bytes, kTensorMapBytes) != 0) continue;
    if (entry != nullptr) {
      entry->address.store(address, std::memory_order_relaxed);
      return;
    }
    if (known.used() >= kMaxKnown) break;
    entry = new (std::nothrow) KnownDescriptor;
    if (entry == nullptr) break;
    std::memcpy(entry->bytes, bytes, kTensorMapBytes);
    entry->address.store(address, std::memory_order_relaxed);
    if (known.set(hash, reinterpret_cast<uint64_t>(entry))) return;
    delete entry;
    break;
  }
  overflowed.store(true, std::memory_order_relaxed);
}

bool any_tensor_map() noexcept { return known.used() != 0; }

CUdeviceptr find_tensor_map(const uint8_t* bytes) noexcept {
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    const auto* entry = reinterpret_cast<const KnownDescriptor*>(known.find(hash_of(bytes, probe)));
    if (entry == nullptr) return 0;
    if (std::memcmp(entry->bytes, bytes, kTensorMapBytes) == 0) return entry->address.load(std::memory_order_relaxed);
  }
  return 0;
}

bool tensor_maps_overflowed() noexcept { return overflowed.load(std::memory_order_relaxed); }

}  // namespace reprise
