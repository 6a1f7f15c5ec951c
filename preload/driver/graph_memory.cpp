#include "preload/driver/graph_memory.h"

#include "preload/driver/driver.h"

namespace reprise {
namespace {

bool tell(CUdevice device, CUgraphMem_attribute attribute, uint64_t* bytes) noexcept {
  cuuint64_t told = 0;
  if (driver().cuDeviceGetGraphMemAttribute(device, attribute, &told) != CUDA_SUCCESS) return false;
  *bytes = told;
  return true;
}

}  // namespace

uint64_t graph_bytes(CUdevice device) noexcept {
  uint64_t bytes = 0;
  return tell(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) ? bytes : 0;
}

void GraphMemory::raise_to(uint64_t bytes) noexcept {
  uint64_t seen = most_bytes_.load(std::memory_order_relaxed);
  while (seen < bytes && !most_bytes_.compare_exchange_weak(seen, bytes, std::memory_order_relaxed)) {
  }
}

void GraphMemory::look(CUdevice device) noexcept {
  uint64_t bytes = 0;
  if (!any() || !tell(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes)) return;
  bytes_.store(bytes, std::memory_order_relaxed);
  raise_to(bytes);
}

void GraphMemory::look_back(CUdevice device) noexcept {
  look(device);
  uint64_t bytes = 0;
  if (any() && tell(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &bytes)) raise_to(bytes);
}

}  // namespace reprise
