#include "preload/tracking/pools.h"

#include "preload/driver/driver.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

// Plain pools, by handle: the device's ordinal and 1.
constinit HandleMap plain_pools;
// The others that the program made: likewise; 2^32: of the host.
constinit HandleMap other_pools;
constexpr uint64_t kHost = uint64_t{1} << 32;

uint64_t key(CUmemoryPool pool) { return reinterpret_cast<uint64_t>(pool); }
uint64_t word(CUdevice device) { return static_cast<uint64_t>(device) + 1; }

}  // namespace

void insert_pool(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept {
  const bool plain = properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE && properties.maxSize == 0 &&
                     properties.usage == 0;
  if (plain) {
    plain_pools.set(key(pool), word(properties.location.id));
  } else {
    plain_pools.erase(key(pool));
  }
  const bool on_device = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const bool on_host = !on_device && properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED;
  other_pools.set(key(pool), plain ? 0 : on_host ? kHost : on_device ? word(properties.location.id) : 0);
}

void forget_pool(CUmemoryPool pool) noexcept {
  plain_pools.erase(key(pool));
  other_pools.erase(key(pool));
}

CUdevice place_of_pool(CUmemoryPool pool, CUdevice otherwise) noexcept {
  const uint64_t known = other_pools.find(key(pool));
  if (known == kHost) return -1;
  if (known != 0) return static_cast<CUdevice>(known - 1);
  CUdevice plain = 0;
  return device_of_plain_pool(pool, &plain) ? plain : otherwise;
}

bool is_plain_pool(CUmemoryPool pool, CUdevice device) noexcept {
  if (const uint64_t known = plain_pools.find(key(pool)); known != 0) return known == word(device);
  CUmemoryPool standard = nullptr;
  if (driver().cuDeviceGetDefaultMemPool(&standard, device) != CUDA_SUCCESS || standard != pool) return false;
  plain_pools.set(key(pool), word(device));
  return true;
}

bool device_of_plain_pool(CUmemoryPool pool, CUdevice* device) noexcept {
  int count = 0;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (*device = 0; *device < count; ++*device) {
    if (is_plain_pool(pool, *device)) return true;
  }
  return false;
}

}  // namespace reprise
