// Streams by handle: trace ids, what stream 0 means, and which streams are being captured. Callers: every hook with a
// stream, barriers, the defragmenter.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace reprise {

inline constexpr uint32_t kLegacyStreamId = 0;
inline constexpr uint32_t kPerThreadStreamId = 1;

// Which default stream the number 0 is: that of the symbol's suffix.
enum class DefaultStream : uint8_t { legacy, per_thread };
inline constexpr DefaultStream kLegacy = DefaultStream::legacy;
inline constexpr DefaultStream kPerThread = DefaultStream::per_thread;

// Never 0: a handle that means the same on every entry point.
inline CUstream explicit_stream(CUstream stream, DefaultStream zero) noexcept {
  if (stream != nullptr) return stream;
  return zero == DefaultStream::legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

// The trace id of an explicit stream. A handle whose creation no hook saw gets its id (and its record) now.
uint32_t stream_id(CUstream stream) noexcept;

void stream_created(CUstream stream) noexcept;
void stream_destroyed(CUstream stream) noexcept;

namespace detail {
extern std::atomic<int> open_captures;
bool ask_capturing(CUstream stream) noexcept;
}  // namespace detail

inline bool any_capture() noexcept { return detail::open_captures.load(std::memory_order_relaxed) > 0; }

// Is work on this stream being captured into a graph (so that nothing runs now)? One load when no capture is open.
inline bool capturing(CUstream stream) noexcept {
  return __builtin_expect(any_capture(), false) && detail::ask_capturing(stream);
}

// The driver has begun a capture on the stream: the handler was told before. The capture is over: the handler is told.
void capture_opened(CUstream stream) noexcept;
void capture_closed(CUstream stream) noexcept;

// A stream that waits for an event that was recorded last on a captured stream joins that capture.
void event_recorded(CUevent event, bool captured) noexcept;
bool joins_capture(CUevent event) noexcept;

}  // namespace reprise
