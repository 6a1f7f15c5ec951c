#include "preload/tracking/streams.h"

#include "preload/base/runtime.h"
#include "preload/base/sequence.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/record/recorder.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace detail {
constinit std::atomic<int> open_captures{0};

bool ask_capturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // The legacy stream cannot be captured. While a blocking stream is captured, asking about the legacy stream is an
  // error, and so is work on it. An error counts as captured: the call then goes to the driver unchanged, and the
  // program gets that error from it.
  const CUresult result = driver().cuStreamIsCapturing(stream, &status);
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}
}  // namespace detail

namespace {

constinit HandleMap ids;
constinit HandleMap origins;          // streams on which a capture was begun
constinit HandleMap captured_events;  // recorded last on a stream that captured
constinit std::atomic<uint32_t> last_stream{kPerThreadStreamId};

uint64_t key(CUstream stream) { return reinterpret_cast<uint64_t>(stream); }

uint32_t register_stream(CUstream stream) {
  const uint32_t id = last_stream.fetch_add(1, std::memory_order_relaxed) + 1;
  ids.set(key(stream), id);
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    unsigned flags = 0;
    int priority = 0;
    driver().cuStreamGetFlags(stream, &flags);
    driver().cuStreamGetPriority(stream, &priority);
    recorder->stream(id, true, (flags & CU_STREAM_NON_BLOCKING) != 0, priority, next_sequence());
  }
  return id;
}

}  // namespace

uint32_t stream_id(CUstream stream) noexcept {
  if (stream == CU_STREAM_LEGACY || stream == nullptr) return kLegacyStreamId;
  if (stream == CU_STREAM_PER_THREAD) return kPerThreadStreamId;
  const uint64_t id = ids.find(key(stream));
  return id != 0 ? static_cast<uint32_t>(id) : register_stream(stream);
}

void stream_created(CUstream stream) noexcept { register_stream(stream); }

void stream_destroyed(CUstream stream) noexcept {
  const uint64_t id = ids.find(key(stream));
  if (id == 0) return;
  ids.erase(key(stream));
  capture_closed(stream);
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    recorder->stream(static_cast<uint32_t>(id), false, false, 0, next_sequence());
  }
}

void capture_opened(CUstream stream) noexcept {
  if (origins.find(key(stream)) != 0) return;
  origins.set(key(stream), 1);
  detail::open_captures.fetch_add(1, std::memory_order_relaxed);
}

void capture_closed(CUstream stream) noexcept {
  if (origins.find(key(stream)) == 0) return;
  origins.erase(key(stream));
  detail::open_captures.fetch_sub(1, std::memory_order_relaxed);
  if (Handler* handler = runtime().handler; handler != nullptr) handler->order.capture_end();
}

void event_recorded(CUevent event, bool captured) noexcept {
  const auto key = reinterpret_cast<uint64_t>(event);
  if (captured) {
    captured_events.set(key, 1);
  } else if (captured_events.used() != 0) {
    captured_events.erase(key);
  }
}

bool joins_capture(CUevent event) noexcept {
  return captured_events.used() != 0 && captured_events.find(reinterpret_cast<uint64_t>(event)) != 0;
}

}  // namespace reprise
