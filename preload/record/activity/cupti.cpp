// Activity records of CUPTI. One client a process: cuptiSubscribe() is what tells, so this source subscribes while it
// collects, fails to start where Nsight Systems or the program's own profiler has, and lets go when it stops.
#include <cupti.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

#include "preload/record/activity/cupti_buffers.h"
#include "preload/record/activity/cupti_library.h"
#include "preload/record/activity/cupti_records.h"
#include "preload/record/activity/sources.h"

namespace reprise {
namespace {

constexpr auto kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
// External ids are attached to records of driver calls, which are enabled one by one.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
};
// So much work of which no record says what it was of: this library wants all driver calls enabled. Of what has been
// stopped, as samples are, all records are there, and any such work is enough: the next start enables all.
constexpr uint32_t kUnexplainedWork = 1000;

CuptiBuffers buffers;

// On any thread. A request that is declined costs records, not correctness.
void CUPTIAPI on_buffer_requested(uint8_t** bytes, size_t* size, size_t* max_records) {
  *size = 0;
  *max_records = 0;
  *bytes = buffers.take(size);
}

void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* bytes, size_t, size_t valid) {
  buffers.complete(bytes, valid);
}

// No callback is ever enabled.
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

class CuptiSource final : public ActivitySource {
 public:
  bool create() noexcept { return cupti_.load() && buffers.create() && records_.create(); }

  bool start() noexcept override {
    const std::lock_guard lock(mutex_);
    if (running()) return true;
    records_.count_anew();
    if (cupti_.subscribe(&subscriber_, on_callback, nullptr) != CUPTI_SUCCESS) return false;
    const bool started = cupti_.register_callbacks(on_buffer_requested, on_buffer_completed) == CUPTI_SUCCESS &&
                         enable_all() && measure_offset();
    running_.store(started, std::memory_order_relaxed);
    if (!started) end();
    // CUPTI's own exit handlers run before those that were registered before it was loaded: ours of cuInit are.
    if (started && !std::exchange(stops_at_exit_, true)) (void)std::atexit([] { cupti_activity_source()->stop(); });
    return started;
  }

  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (running_.exchange(false, std::memory_order_relaxed)) end();
  }

  bool running() const noexcept override { return running_.load(std::memory_order_relaxed); }

  void push(uint64_t id, CUstream) noexcept override { cupti_.push(kOurs, id); }
  void pop(uint64_t, CUstream) noexcept override {
    uint64_t last = 0;
    cupti_.pop(kOurs, &last);
  }

  // Also after stop(), which has made CUPTI hand over what it had.
  void collect(ActivityCallback callback, void* user) noexcept override {
    const std::lock_guard lock(mutex_);
    if (running()) cupti_.flush_all(0);
    buffers.read_completed([this](const CuptiBuffers::Completed& buffer) { read(buffer); });
    records_.deliver(callback, user);
    if (all_calls_ || records_.unexplained() < (running() ? kUnexplainedWork : 1)) return;
    all_calls_ = !running() || cupti_.enable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS;
  }

  const char* name() const noexcept override { return "cupti"; }

 private:
  bool enable_all() noexcept {
    for (const CUpti_ActivityKind kind : kKinds) {
      if (cupti_.enable(kind) != CUPTI_SUCCESS) return false;
    }
    if (!all_calls_ && cupti_.enable_driver_calls(true) > 0) return true;
    all_calls_ = cupti_.enable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS;
    return all_calls_;
  }

  void end() noexcept {
    cupti_.enable_driver_calls(false);
    if (all_calls_) cupti_.disable(CUPTI_ACTIVITY_KIND_DRIVER);
    for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
    cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);  // our buffers shall not be handed to the next client
    cupti_.unsubscribe(subscriber_);
  }

  void read(const CuptiBuffers::Completed& buffer) noexcept {
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer.bytes, buffer.valid, &record) == CUPTI_SUCCESS) records_.add(record, offset_ns_);
  }

  // CUPTI's clock counts from another origin than CLOCK_MONOTONIC.
  bool measure_offset() noexcept {
    uint64_t theirs = 0;
    timespec ours{};
    if (cupti_.get_timestamp(&theirs) != CUPTI_SUCCESS) return false;
    ::clock_gettime(CLOCK_MONOTONIC, &ours);
    offset_ns_ = ours.tv_sec * 1'000'000'000 + ours.tv_nsec - static_cast<int64_t>(theirs);
    return true;
  }

  std::mutex mutex_;  // of starting, stopping and collecting; CUPTI's callbacks do without
  CuptiLibrary cupti_{};
  CuptiRecords records_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  int64_t offset_ns_ = 0;
  bool all_calls_ = false;
  bool stops_at_exit_ = false;
  std::atomic<bool> running_{false};
};

}  // namespace

ActivitySource* cupti_activity_source() noexcept {
  static CuptiSource* const source = new (std::nothrow) CuptiSource;
  static const bool works = source != nullptr && source->create();
  return works ? source : nullptr;
}

}  // namespace reprise
