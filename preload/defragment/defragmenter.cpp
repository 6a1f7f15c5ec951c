#include "preload/defragment/defragmenter.h"

#include <algorithm>

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

// How many StitchedBlocks that are not handed out are kept for a later request, and how often each chunk is mapped on
// average before the oldest of them are dropped. GMLake's own limit is 1000 GB of stitched addresses, about seven times
// an H200.
constexpr uint32_t kStitchedBlocks = 8192;
constexpr uint64_t kMappedFactor = 6;

}  // namespace

bool Defragmenter::open(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  if (state_.load() != State::closed) return state_.load() == State::open;
  const char* const why = set_up(context);
  if (why != nullptr) say<Cause::not_defragmented>(why);
  state_.store(why == nullptr ? State::open : State::passing, std::memory_order_release);
  return why == nullptr;
}

// nullptr: this device can be defragmented; else why not.
const char* Defragmenter::set_up(CUcontext context) noexcept {
  CUdevice device = 0;
  int devices = 0;
  size_t bytes = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS || driver().cuDeviceGetCount(&devices) != CUDA_SUCCESS ||
      driver().cuDeviceTotalMem(&bytes, device) != CUDA_SUCCESS) {
    return phrase<Cause::device_silent>();
  }
  // Peers reach mapped chunks only with rights that cuCtxEnablePeerAccess does not give.
  if (devices > 1) return phrase<Cause::several_devices>();
  const uint64_t chunk = device_.open(device, context);
  if (chunk == 0) return phrase<Cause::no_mapping>();
  if (driver().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return phrase<Cause::no_event>();
  stitch::Limits limits;
  limits.chunk_bytes = chunk;
  limits.chunks = static_cast<uint32_t>(bytes / chunk);
  limits.stitched_from = static_cast<uint32_t>(std::min(config_.fragmentation_limit.bytes / chunk, uint64_t{bytes}));
  limits.mapped_chunks = static_cast<uint32_t>(std::min<uint64_t>(limits.chunks * kMappedFactor, UINT32_MAX));
  limits.stitched_blocks = kStitchedBlocks;
  if (!stitcher_.open(&device_, limits)) return phrase<Cause::no_tables>();
  context_ = context;
  find_device_observer();
  return nullptr;
}

bool Defragmenter::serves(size_t bytes) noexcept {
  const State state = state_.load(std::memory_order_acquire);
  // During a capture some allocations are errors: the driver decides.
  if (state == State::passing || bytes == 0 || any_capture()) return false;
  CUcontext context = nullptr;
  if (driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return false;
  if (state == State::closed && !open(context)) return false;
  return bytes >= device_.chunk_bytes() && context == context_;
}

// Memory that is idle in the stitcher is missing in the driver: on out of memory it is given back, and the driver is
// asked again.
template <typename Forward>
CUresult Defragmenter::forward(Forward ask) noexcept {
  CUresult result = ask();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || state_.load(std::memory_order_acquire) == State::closed) return result;
  uint64_t freed = 0;
  {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr && !any_capture()) freed = stitcher_.trim();
  }
  return freed != 0 ? ask() : result;
}

// Streams are numbered from 1, for tag 0 is kIdle. Work of the per-thread default streams has no handle that other
// threads could wait for.
stitch::Tag Defragmenter::tag_of(CUstream stream) noexcept {
  if (stream == CU_STREAM_PER_THREAD) return stitch::kUnknownWork;
  for (uint32_t i = 0; i < stream_count_; ++i) {
    if (streams_[i] == stream) return i + 1;
  }
  if (stream_count_ == kMaxStreams) return stitch::kUnknownWork;
  streams_[stream_count_++] = stream;
  return stream_count_;
}

// Makes `stream` wait for the work that still used the memory when it was freed. false: only a synchronisation can wait
// for that.
bool Defragmenter::ordered(const stitch::Grant& grant, CUstream stream) noexcept {
  if (grant.wait_count == 0 && !grant.wait_for_all) return true;
  ++waits_;
  if (grant.wait_for_all || stream == nullptr) return false;
  for (uint32_t i = 0; i < grant.wait_count; ++i) {
    const CUstream before = streams_[grant.waits[i] - 1];
    // The event is recorded now, later than the free: `stream` waits for a little more than it has to.
    if (before == nullptr || driver().cuEventRecord(event_, before) != CUDA_SUCCESS ||
        driver().cuStreamWaitEvent(stream, event_, 0) != CUDA_SUCCESS) {
      return false;
    }
  }
  return true;
}

// Waits without the lock: the work may end only after another thread has allocated or freed.
CUresult Defragmenter::settle(uint32_t mark) noexcept {
  const CUresult result = synchronize_context(context_);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  stitcher_.settled(mark);
  return CUDA_SUCCESS;
}

// `stream` nullptr: usable on every stream at once, as memory of cuMemAlloc is.
CUresult Defragmenter::take(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept {
  stitch::Grant grant;
  uint32_t mark = 0;
  bool wait = false;
  {
    const std::lock_guard lock(mutex_);
    const stitch::Tag tag = stream != nullptr ? tag_of(stream) : stitch::kIdle;
    const stitch::Result result = stitcher_.allocate(bytes, tag, &grant);
    if (result == stitch::Result::failed) return device_.error();
    if (result != stitch::Result::ok) return CUDA_ERROR_OUT_OF_MEMORY;
    wait = !ordered(grant, stream);
    if (wait) mark = stitcher_.mark();
  }
  if (wait) {
    if (const CUresult result = settle(mark); result != CUDA_SUCCESS) {
      const std::lock_guard lock(mutex_);
      stitcher_.release(grant.address, stitch::kUnknownWork);
      return result;
    }
  }
  Allocation allocation;
  allocation.id = next_allocation_id();
  allocation.address = grant.address;
  allocation.size = bytes;
  allocation.origin = stream != nullptr ? trace::Origin::async : trace::Origin::alloc;
  insert_allocation(allocation);
  observe_allocated(grant.address, bytes, 0);
  *address = grant.address;
  return CUDA_SUCCESS;
}

CUresult Defragmenter::allocate(CUdeviceptr* address, size_t bytes) noexcept {
  const auto ask = [&] { return driver().cuMemAlloc(address, bytes); };
  if (address == nullptr || !serves(bytes)) return forward(ask);
  const CUresult result = take(address, bytes, nullptr);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? forward(ask) : result;  // the driver's own answer, whatever it is
}

CUresult Defragmenter::allocate_async(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept {
  const auto ask = [&] { return driver().cuMemAllocAsync(address, bytes, stream); };
  if (address == nullptr || !serves(bytes)) return forward(ask);
  const CUresult result = take(address, bytes, stream);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? forward(ask) : result;
}

// Waits for all work, as cuMemFree does: what uses the memory may be on any stream.
CUresult Defragmenter::release(CUdeviceptr address) noexcept {
  Allocation allocation;
  // The map forgets the allocation first: once it is free, another thread may get the same address.
  if (address == 0 || !forget_allocation(address, &allocation)) return driver().cuMemFree(address);
  stitch::Tag tag = stitch::kUnknownWork;
  if (!any_capture()) {
    mutex_.lock();
    const uint32_t mark = stitcher_.mark();
    mutex_.unlock();
    if (const CUresult result = settle(mark); result != CUDA_SUCCESS) {
      insert_allocation(allocation);
      return result;
    }
    tag = stitch::kIdle;
  }
  observe_freed(address, 0);
  const std::lock_guard lock(mutex_);
  stitcher_.release(address, tag);
  return CUDA_SUCCESS;
}

CUresult Defragmenter::release_async(CUdeviceptr address, CUstream stream) noexcept {
  Allocation allocation;
  if (address == 0 || !forget_allocation(address, &allocation)) return driver().cuMemFreeAsync(address, stream);
  if (allocation.origin != trace::Origin::async) {
    insert_allocation(allocation);
    return CUDA_ERROR_INVALID_VALUE;  // as the driver answers for memory that is not stream-ordered
  }
  observe_freed(address, 0);
  const std::lock_guard lock(mutex_);
  stitcher_.release(address, tag_of(stream));
  return CUDA_SUCCESS;
}

CUresult Defragmenter::memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  const CUresult result = driver().cuMemGetInfo(free_bytes, total_bytes);
  if (result != CUDA_SUCCESS || free_bytes == nullptr) return result;
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr) *free_bytes += stitcher_.idle_bytes();
  return result;
}

void Defragmenter::stream_destroyed(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < stream_count_; ++i) {
    if (streams_[i] == stream) streams_[i] = nullptr;
  }
}

void Defragmenter::pass_on(const char* why) noexcept {
  if (state_.exchange(State::passing) != State::passing) {
    say<Cause::defragmenting_ended>(why);
  }
}

}  // namespace reprise
