#include "preload/measure/own_link.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "preload/driver/outside_captures.h"
#include "preload/measure/link_timer.h"

namespace reprise {
namespace {

// Of smaller ones, as simulated devices may have them, several together: what a copy costs beside its bytes is told
// apart from the rate.
constexpr uint64_t kLeastBytes = 2u << 20;

// A chunk at an address of its own, pinned host memory and two streams.
class OwnEnds {
 public:
  OwnEnds() noexcept = default;
  OwnEnds(const OwnEnds&) = delete;
  OwnEnds& operator=(const OwnEnds&) = delete;
  // What copies may still write to stays, should the driver refuse to wait for them.
  ~OwnEnds() {
    if (!idle()) return;
    if (unmap() == CUDA_SUCCESS && ends_.device != 0) driver().cuMemAddressFree(ends_.device, ends_.bytes);
    if (created_) driver().cuMemRelease(handle_);
    if (ends_.host != nullptr) driver().cuMemFreeHost(ends_.host);
    for (CUstream stream : {ends_.to_device, ends_.to_host}) {
      if (stream != nullptr) driver().cuStreamDestroy(stream);
    }
  }

  bool open(CUdevice device, uint64_t chunk_bytes) noexcept {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = access_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = access_.location.id = device;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    size_t chunk = 0;
    if (driver().cuMemGetAllocationGranularity(&chunk, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) {
      return false;
    }
    const uint64_t bytes = chunk_bytes != 0 ? chunk_bytes : std::max<uint64_t>(chunk, kLeastBytes);
    ends_.bytes = bytes;
    created_ = driver().cuMemCreate(&handle_, bytes, &properties, 0) == CUDA_SUCCESS;
    return created_ && made(driver().cuMemAddressReserve(&ends_.device, bytes, bytes, 0, 0), ends_.device) &&
           map() == CUDA_SUCCESS &&
           made(driver().cuMemHostAlloc(&ends_.host, bytes, CU_MEMHOSTALLOC_PORTABLE), ends_.host) &&
           made(driver().cuStreamCreate(&ends_.to_device, CU_STREAM_NON_BLOCKING), ends_.to_device) &&
           made(driver().cuStreamCreate(&ends_.to_host, CU_STREAM_NON_BLOCKING), ends_.to_host);
  }

  LinkRates measure() noexcept {
    LinkRates rates;
    if (!measure_copies(ends_, &rates) || !idle()) return {};
    rates.remap_ns_per_chunk = remap_ns([this] {
      const CUresult result = unmap();
      return result == CUDA_SUCCESS ? map() : result;
    });
    return rates;
  }

 private:
  template <typename Thing>
  static bool made(CUresult result, Thing& thing) noexcept {
    if (result != CUDA_SUCCESS) thing = Thing{};
    return result == CUDA_SUCCESS;
  }
  bool idle() const noexcept {
    for (CUstream stream : {ends_.to_device, ends_.to_host}) {
      if (stream != nullptr && driver().cuStreamSynchronize(stream) != CUDA_SUCCESS) return false;
    }
    return true;
  }
  CUresult map() noexcept {
    const CUresult result = driver().cuMemMap(ends_.device, ends_.bytes, 0, handle_, 0);
    mapped_ = result == CUDA_SUCCESS;
    return mapped_ ? driver().cuMemSetAccess(ends_.device, ends_.bytes, &access_, 1) : result;
  }
  CUresult unmap() noexcept {
    if (!mapped_) return CUDA_SUCCESS;
    const CUresult result = driver().cuMemUnmap(ends_.device, ends_.bytes);
    mapped_ = result != CUDA_SUCCESS;
    return result;
  }

  CUmemAccessDesc access_{};
  LinkEnds ends_;
  CUmemGenericAllocationHandle handle_ = 0;
  bool created_ = false;
  bool mapped_ = false;
};

}  // namespace

LinkRates measure_own_link(uint64_t chunk_bytes) noexcept {
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  const OutsideCaptures outside;
  OwnEnds ends;
  return ends.open(device, chunk_bytes) ? ends.measure() : LinkRates{};
}

}  // namespace reprise
