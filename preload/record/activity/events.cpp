// Activity by pairs of timing events around each op, on the op's own stream. All event times are differences, so they
// are tied to CLOCK_MONOTONIC by anchors: an event recorded on an idle stream of our own, whose time is known.
#include <atomic>
#include <cstdint>
#include <ctime>
#include <new>
#include <numeric>

#include "preload/driver/driver.h"
#include "preload/record/activity/sources.h"

namespace reprise {
namespace {

constexpr uint32_t kPairs = 32768;  // ops whose times have not been collected yet
constexpr uint32_t kStarting = 64;  // threads that may be taking a pair at this instant
constexpr uint32_t kAnchors = 64;
constexpr uint64_t kAnchorNs = 4'000'000'000;  // elapsed times are floats: beyond, they round to more than 0.25 us
constexpr uint32_t kNoPair = UINT32_MAX;

uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

enum PairState : uint32_t { kFree, kTaken, kRecorded };

struct Pair {
  std::atomic<uint32_t> state{kFree};
  uint32_t anchor = 0;
  uint64_t id = 0;
  CUevent start = nullptr;
  CUevent end = nullptr;
};

struct Anchor {
  CUevent event = nullptr;
  double time_ns = 0;
};

__attribute__((tls_model("initial-exec"))) constinit thread_local uint32_t open_pair = kNoPair;

class EventSource final : public ActivitySource {
 public:
  bool start() noexcept override {
    running_.store(true, std::memory_order_relaxed);
    return true;
  }
  void stop() noexcept override { running_.store(false, std::memory_order_relaxed); }
  bool running() const noexcept override { return running_.load(std::memory_order_relaxed); }

  void push(uint64_t id, CUstream stream) noexcept override {
    if (!running() || open_pair != kNoPair || !prepare() || !may_record(stream)) return;
    const uint32_t index = take();
    if (index == kNoPair) return;
    Pair& pair = pairs_[index];
    pair.id = id;
    pair.anchor = anchor_count_.load(std::memory_order_acquire) - 1;
    if (driver().cuEventRecord(pair.start, stream) == CUDA_SUCCESS) {
      open_pair = index;
    } else {
      pair.state.store(kFree, std::memory_order_release);
    }
  }

  void pop(uint64_t id, CUstream stream) noexcept override {
    if (open_pair == kNoPair || pairs_[open_pair].id != id) return;
    Pair& pair = pairs_[open_pair];
    open_pair = kNoPair;
    const bool recorded = driver().cuEventRecord(pair.end, stream) == CUDA_SUCCESS;
    pair.state.store(recorded ? kRecorded : kFree, std::memory_order_release);
  }

  void collect(ActivityCallback callback, void* user) noexcept override {
    if (ready_.load(std::memory_order_acquire) != kReady) return;
    if (driver().cuCtxPushCurrent(context_) != CUDA_SUCCESS) return;
    // Pairs are taken in order of their tickets, so what is open lies between the oldest open one and the newest.
    const uint64_t end = next_.load(std::memory_order_acquire);
    if (end - oldest_ > kPairs) oldest_ = end - kPairs;
    bool all_free = true;
    for (uint64_t ticket = oldest_; ticket != end; ++ticket) {
      all_free = settle(pairs_[ticket % kPairs], callback, user) && all_free;
      // The last few may have a ticket but not yet their pair: they are looked at again.
      if (all_free && end - ticket > kStarting) oldest_ = ticket + 1;
    }
    if (now_ns() - anchored_at_ns_ > kAnchorNs) add_anchor();
    CUcontext popped = nullptr;
    driver().cuCtxPopCurrent(&popped);
  }

  const char* name() const noexcept override { return "events"; }

 private:
  enum Ready : uint32_t { kNotYet, kPreparing, kReady, kBroken };

  // On the first op that has a context: the anchor's stream and event. Only this context's ops are timed. true: ready,
  // and the calling thread is in that context.
  bool prepare() noexcept {
    CUcontext current = nullptr;
    if (driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return false;
    uint32_t state = ready_.load(std::memory_order_acquire);
    if (state == kReady) return current == context_;
    if (state != kNotYet || !ready_.compare_exchange_strong(state, kPreparing, std::memory_order_acq_rel)) return false;
    context_ = current;
    // A capture elsewhere in the process must not make these calls fail, nor be broken by them.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    driver().cuThreadExchangeStreamCaptureMode(&mode);
    const bool ok = driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && add_anchor();
    driver().cuThreadExchangeStreamCaptureMode(&mode);
    ready_.store(ok ? kReady : kBroken, std::memory_order_release);
    return ok;
  }

  // Never touch a stream that is being captured. For the legacy stream the driver answers with an error while another
  // stream's capture forbids its use.
  static bool may_record(CUstream stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
  }

  uint32_t take() noexcept {
    for (uint32_t attempt = 0; attempt < 16; ++attempt) {
      const auto index = static_cast<uint32_t>(next_.fetch_add(1, std::memory_order_acq_rel) % kPairs);
      Pair& pair = pairs_[index];
      uint32_t expected = kFree;
      if (!pair.state.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) continue;
      if (pair.start != nullptr || make_events(pair)) return index;
      pair.state.store(kFree, std::memory_order_release);
      return kNoPair;
    }
    return kNoPair;
  }

  static bool make_events(Pair& pair) noexcept {
    if (driver().cuEventCreate(&pair.start, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    if (driver().cuEventCreate(&pair.end, CU_EVENT_DEFAULT) == CUDA_SUCCESS) return true;
    driver().cuEventDestroy(pair.start);
    pair.start = nullptr;
    return false;
  }

  // The calling thread is in context_.
  bool add_anchor() noexcept {
    const uint32_t count = anchor_count_.load(std::memory_order_relaxed);
    Anchor& anchor = anchors_[count % kAnchors];
    if (anchor.event == nullptr && driver().cuEventCreate(&anchor.event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
      return false;
    const uint64_t before = now_ns();
    if (driver().cuEventRecord(anchor.event, stream_) != CUDA_SUCCESS ||
        driver().cuEventSynchronize(anchor.event) != CUDA_SUCCESS) {
      return false;
    }
    const uint64_t after = now_ns();
    // The first anchor sets the clock: the event ran somewhere between the two readings. Later ones follow from the one
    // before, so that times stay on one scale.
    anchor.time_ns = static_cast<double>(std::midpoint(before, after));
    float milliseconds = 0;
    if (count > 0) {
      const Anchor& last = anchors_[(count - 1) % kAnchors];
      if (driver().cuEventElapsedTime(&milliseconds, last.event, anchor.event) != CUDA_SUCCESS) return false;
      anchor.time_ns = last.time_ns + static_cast<double>(milliseconds) * 1e6;
    }
    anchored_at_ns_ = after;
    anchor_count_.store(count + 1, std::memory_order_release);
    return true;
  }

  // Reports a pair whose op is complete. true: the pair is free.
  bool settle(Pair& pair, ActivityCallback callback, void* user) noexcept {
    const uint32_t state = pair.state.load(std::memory_order_acquire);
    if (state != kRecorded) return state == kFree;
    const CUresult complete = driver().cuEventQuery(pair.end);
    if (complete == CUDA_ERROR_NOT_READY) return false;
    if (complete == CUDA_SUCCESS) report(pair, callback, user);
    pair.state.store(kFree, std::memory_order_release);
    return true;
  }

  void report(const Pair& pair, ActivityCallback callback, void* user) noexcept {
    // Its anchor's slot has been used again: the op waited minutes for its collection.
    if (anchor_count_.load(std::memory_order_relaxed) - pair.anchor > kAnchors) return;
    const Anchor& anchor = anchors_[pair.anchor % kAnchors];
    float since_anchor = 0;
    float duration = 0;
    if (driver().cuEventElapsedTime(&since_anchor, anchor.event, pair.start) != CUDA_SUCCESS ||
        driver().cuEventElapsedTime(&duration, pair.start, pair.end) != CUDA_SUCCESS) {
      return;
    }
    const double start_ns = anchor.time_ns + static_cast<double>(since_anchor) * 1e6;
    const double end_ns = start_ns + static_cast<double>(duration) * 1e6;
    callback(user, pair.id, static_cast<uint64_t>(start_ns), static_cast<uint64_t>(end_ns));
  }

  std::atomic<bool> running_{false};
  std::atomic<uint32_t> ready_{kNotYet};
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::atomic<uint32_t> anchor_count_{0};
  uint64_t anchored_at_ns_ = 0;
  Anchor anchors_[kAnchors];
  std::atomic<uint64_t> next_{0};  // ticket of the next pair
  uint64_t oldest_ = 0;            // collector only
  Pair pairs_[kPairs];
};

}  // namespace

ActivitySource* event_activity_source() noexcept {
  static ActivitySource* const source = []() -> ActivitySource* {
    if (!driver_has(driver().cuEventRecord) || !driver_has(driver().cuEventElapsedTime) ||
        !driver_has(driver().cuStreamIsCapturing)) {
      return nullptr;
    }
    return new (std::nothrow) EventSource;
  }();
  return source;
}

}  // namespace reprise
