// The order of the program's work: what becomes of a call that submits work, waits for it or asks about it. One half of
// a Handler; hooks of launches, copies, events, streams and captures call it, on any thread. Every function returns
// what the program shall see.
#pragma once
#include <cuda.h>

#include "preload/calls/command.h"
#include "preload/calls/read_back.h"

namespace reprise {

// OrderHandler::submit()'s answer to a blind command that is no call of a plan in force (any more): nothing was done.
// Its operands are to be looked into, and it comes again. No error of the driver's has the number.
inline constexpr CUresult kLookFirst = static_cast<CUresult>(1023);

class OrderHandler {
 public:
  // Work on a stream. The command and what it points to are only valid during the call. May answer kLookFirst.
  virtual CUresult submit(const Command& command) noexcept = 0;

  virtual CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept = 0;
  virtual CUresult event_query(CUevent event) noexcept = 0;
  virtual CUresult event_synchronize(CUevent event) noexcept = 0;
  virtual CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept = 0;
  virtual CUresult event_destroy(CUevent event) noexcept = 0;
  virtual CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept = 0;
  virtual CUresult stream_query(CUstream stream) noexcept = 0;
  virtual CUresult stream_synchronize(CUstream stream) noexcept = 0;
  virtual CUresult stream_destroy(CUstream stream) noexcept = 0;
  virtual CUresult context_synchronize() noexcept = 0;

  // The stream that the program's work on `stream` goes to. A driver's per-thread default stream is that of the thread
  // which calls the driver, so a handler that defers work has one of its own for each thread.
  virtual CUstream stand_in(CUstream stream) noexcept { return stream; }
  // Before a forwarded call that works on the driver's own per-thread default stream, because it names none.
  virtual void before_per_thread_call() noexcept {}

  // Before a call that is forwarded: everything submitted so far is with the driver, and with `all_resident` everything
  // that the program owns is resident at the addresses that the program knows (`name` is for the log). An error: this
  // cannot be achieved; the call must not be forwarded, and the program gets the error instead.
  virtual CUresult before_ordered(const char* name, bool all_resident) noexcept = 0;
  // Before the program's stream begins to capture, before another one may join a capture; after a capture has ended, or
  // could not begin. Nothing that was submitted is deferred past any of these, nor is anything submitted in between. An
  // error: the call must not be forwarded.
  virtual CUresult capture_begin() noexcept = 0;
  virtual CUresult before_joining_capture() noexcept = 0;
  virtual void capture_end() noexcept = 0;

  // Is the program recorded, or served on demand, so that buffers are worth reading back? A plan in force says what its
  // calls touch. Asked for each launch that has such a buffer.
  virtual bool reads_back() const noexcept { return false; }
  // false: the bytes could not be had, or not in time. Not while a capture is open.
  virtual bool read_back(const ReadBack&) noexcept { return false; }

 protected:
  ~OrderHandler() = default;
};

}  // namespace reprise
