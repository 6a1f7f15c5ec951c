#include "tools/device/streams/context.h"

#include <algorithm>
#include <utility>

#include "tools/device/engines/device.h"
#include "tools/device/streams/event.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {
namespace {

std::atomic<uint64_t> next_context_id{1};

// Those of which cuda.h says: "This leaves the process in an inconsistent state and any further CUDA work will return
// the same error. To continue using CUDA, the process must be terminated and relaunched." A failed assertion is none of
// them: there the context is to be destroyed.
bool ends_process(CUresult error) {
  switch (error) {
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::atomic<int> Context::process_status_{CUDA_SUCCESS};

ContextTable& contexts() {
  static ContextTable& table = *new ContextTable;
  return table;
}

size_t default_limit(int limit) noexcept {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return 1u << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8u << 20;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

Context* find_context(CUcontext handle) { return contexts().get(handle); }

Context::Context(Device& its_device, uint64_t its_id, unsigned its_flags, bool is_primary)
    : device(its_device), id(its_id), primary(is_primary), flags(its_flags) {
  for (int limit = 0; limit < CU_LIMIT_MAX; ++limit) limits[limit] = default_limit(limit);
}

void Context::fail(CUresult error) noexcept {
  int expected = CUDA_SUCCESS;
  if (ends_process(error)) process_status_.compare_exchange_strong(expected, error, std::memory_order_relaxed);
  expected = CUDA_SUCCESS;
  status_.compare_exchange_strong(expected, error, std::memory_order_relaxed);
}

void Context::revive() noexcept { status_.store(CUDA_SUCCESS, std::memory_order_relaxed); }

std::shared_ptr<Stream> Context::legacy() {
  const std::lock_guard lock(mutex_);
  if (legacy_ == nullptr) {
    legacy_ = std::make_shared<Stream>(*this, StreamKind::legacy, 0u, 0);
    legacy_->handle = CU_STREAM_LEGACY;
    streams_.push_back(legacy_);
  }
  return legacy_;
}

void Context::add_stream(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
}

void Context::forget_stream(const Stream* stream) {
  std::shared_ptr<Stream> last;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const auto& other) { return other.get() == stream; });
  if (found == streams_.end()) return;
  last = *found;
  streams_.erase(found);
}

std::vector<std::shared_ptr<Stream>> Context::streams() {
  const std::lock_guard lock(mutex_);
  return streams_;
}

void Context::hold_back(std::shared_ptr<Stream> behind, uint64_t position) {
  const std::lock_guard lock(mutex_);
  held_back_.behind = std::move(behind);
  held_back_.position = position;
  held_back_.any.store(true, std::memory_order_release);
}

std::shared_ptr<Stream> Context::held_back_by(uint64_t* position) {
  if (!held_back_.any.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (held_back_.behind != nullptr && held_back_.behind->reached(held_back_.position)) {
    held_back_.behind = nullptr;
    held_back_.any.store(false, std::memory_order_release);
  }
  *position = held_back_.position;
  return held_back_.behind;
}

void Context::drain() {
  for (const std::shared_ptr<Stream>& stream : streams()) stream->drain();
}

void Context::close() {
  drain();
  status_.store(CUDA_ERROR_CONTEXT_IS_DESTROYED, std::memory_order_relaxed);
  for (const std::shared_ptr<Stream>& stream : streams()) {
    if (stream->kind == StreamKind::created) reprise::sim::streams().remove(stream->handle);
    if (stream->kind != StreamKind::per_thread) stream->close();
  }
  {
    const std::lock_guard lock(mutex_);
    legacy_ = nullptr;
  }
  release_events(*this);
}

namespace {

// For good: see the header. Where a tool that looks for leaks finds it.
void keep(std::shared_ptr<Context> context) {
  static std::mutex& mutex = *new std::mutex;
  static std::vector<std::shared_ptr<Context>>& all = *new std::vector<std::shared_ptr<Context>>;
  const std::lock_guard lock(mutex);
  all.push_back(std::move(context));
}

}  // namespace

Context* create_context(Device& device, unsigned flags, bool primary) {
  if (!device.open_context()) return nullptr;
  auto context = std::make_shared<Context>(device, next_context_id++, flags, primary);
  context->handle = contexts().add(context);
  keep(context);
  return context.get();
}

Context* retain_primary(Device& device) {
  const std::lock_guard lock(device.mutex);
  PrimaryContext& primary = device.primary;
  if (primary.context == nullptr) {
    primary.context = create_context(device, primary.flags, true);
    if (primary.context == nullptr) return nullptr;
  } else if (primary.references == 0) {
    if (!device.open_context()) return nullptr;
    primary.context->flags = primary.flags;
    primary.context->revive();
  }
  ++primary.references;
  return primary.context;
}

void drain_device(Device& device) {
  for (const auto& [handle, context] : contexts().all()) {
    if (&context->device == &device) context->drain();
  }
}

}  // namespace reprise::sim
