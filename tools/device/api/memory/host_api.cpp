// cuMemHostAlloc and its kin.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tools/device/base/settings.h"
#include "tools/device/engines/clock.h"
#include "tools/device/engines/device.h"
#include "tools/device/engines/host_time.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/host.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/enter.h"

namespace reprise::sim {
namespace {

constexpr uint64_t kPage = 4096;

Range host_range(Context& context, uint64_t base, uint64_t bytes, RangeKind kind, unsigned flags) {
  Range range;
  range.base = base;
  range.bytes = bytes;
  range.kind = kind;
  range.context = &context;
  range.flags = flags;
  range.buffer_id = next_buffer_id();
  return range;
}

void* map_host_memory(uint64_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (bytes >= 2ull << 20) madvise(base, bytes, MADV_HUGEPAGE);
  return base;
}

// Locking pages takes its time. Not while a capture forbids calls that may be unsafe (cuThreadExchangeStreamCaptureMode
// names cudaMalloc; nothing was found that says that pinning is another matter).
CUresult pin(uint64_t bytes) {
  SIM_TRY(refuse_in_capture());
  const uint64_t rate = settings().pin_bytes_per_second;
  if (rate == 0) return CUDA_SUCCESS;
  const auto ns = static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(rate) * 1e9);
  if (modelled_clock()) {
    HostCall().takes(ns);
  } else {
    sleep_until(now_ns() + ns);
  }
  return CUDA_SUCCESS;
}

bool is_mapped(uint64_t base, uint64_t bytes) {
  const uint64_t first = base / kPage * kPage;
  const uint64_t pages = (round_up(base + bytes, kPage) - first) / kPage;
  std::vector<unsigned char> resident(pages);
  return mincore(reinterpret_cast<void*>(first), pages * kPage, resident.data()) == 0 || errno != ENOMEM;
}

// Implicit synchronisation, as with cuMemFree.
CUresult free_host(Context& context, void* pointer, RangeKind kind, CUresult error) {
  const auto range = memory_map().find(reinterpret_cast<uint64_t>(pointer));
  if (!range || range->kind != kind || range->base != reinterpret_cast<uint64_t>(pointer)) return error;
  drain_device(context.device);
  free_host_memory(*range);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult allocate_host_memory(Context& context, uint64_t bytes, unsigned flags, void** address) {
  void* base = map_host_memory(bytes);
  if (base == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  memory_map().add(host_range(context, reinterpret_cast<uint64_t>(base), bytes, RangeKind::host, flags));
  *address = base;
  return CUDA_SUCCESS;
}

CUresult allocate_pool_host_memory(Context& context, uint64_t bytes, std::shared_ptr<Pool> pool, CUdeviceptr* address) {
  void* base = map_host_memory(bytes);
  if (base == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(base);
  Range range = host_range(context, *address, bytes, RangeKind::pool, 0);
  range.pool = std::move(pool);
  memory_map().add(std::move(range));
  return CUDA_SUCCESS;
}

void free_host_memory(const Range& range) {
  memory_map().remove(range.base);
  if (range.kind != RangeKind::registered) munmap(reinterpret_cast<void*>(range.base), round_up(range.bytes, kPage));
}

}  // namespace reprise::sim

using namespace reprise::sim;

extern "C" {

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  SIM_REQUIRE(pp != nullptr && bytesize != 0 && (Flags & ~kKnown) == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(pin(bytesize));
  return allocate_host_memory(*context, bytesize, Flags, pp);
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pp != nullptr && bytesize != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(pin(bytesize));
  return allocate_host_memory(*context, bytesize, 0, pp);
}

CUresult cuMemFreeHost(void* p) {
  SIM_ENTER_CONTEXT(context);
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return free_host(*context, p, RangeKind::host, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  SIM_REQUIRE(p != nullptr && bytesize != 0 && (Flags & ~(kKnown | CU_MEMHOSTREGISTER_IOMEMORY)) == 0,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE((Flags & CU_MEMHOSTREGISTER_IOMEMORY) == 0, CUDA_ERROR_NOT_SUPPORTED);
  const uint64_t base = reinterpret_cast<uint64_t>(p);
  SIM_REQUIRE(is_mapped(base, bytesize), CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(pin(bytesize));
  return memory_map().add(host_range(*context, base, bytesize, RangeKind::registered, Flags))
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
  return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(p != nullptr, CUDA_ERROR_INVALID_VALUE);
  return free_host(*context, p, RangeKind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pdptr != nullptr && p != nullptr && Flags == 0, CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(reinterpret_cast<uint64_t>(p));
  SIM_REQUIRE(range && (range->kind == RangeKind::host || range->kind == RangeKind::registered),
              CUDA_ERROR_INVALID_VALUE);
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pFlags != nullptr && p != nullptr, CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(reinterpret_cast<uint64_t>(p));
  SIM_REQUIRE(range && range->kind == RangeKind::host, CUDA_ERROR_INVALID_VALUE);
  // With unified addressing all pinned memory is mapped.
  *pFlags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

}  // extern "C"
