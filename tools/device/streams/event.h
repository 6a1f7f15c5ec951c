// Events: each record makes a fresh point (a stream position and the time it was reached), so that waits, queries and a
// re-record never disturb each other. Callers: the event and stream functions, graphs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tools/device/base/handles.h"
#include "tools/device/streams/context.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {

class Capture;
struct CapturePoint;

// One record of an event.
struct EventPoint {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;             // set once submitted
  std::atomic<uint64_t> time_ns{0};  // set when reached
};

class Event {
 public:
  Event(Context& its_context, unsigned its_flags) : context(its_context), flags(its_flags) {}
  Context& context;
  const unsigned flags;
  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }

  // The last record; nullptr before the first one.
  std::shared_ptr<EventPoint> point() const {
    const std::lock_guard lock(mutex_);
    return point_;
  }
  // The last record was made while its stream was captured: what it stands for in the graph.
  std::shared_ptr<CapturePoint> captured() const {
    const std::lock_guard lock(mutex_);
    return captured_;
  }
  void set_point(std::shared_ptr<EventPoint> point) {
    const std::lock_guard lock(mutex_);
    point_ = std::move(point);
    captured_ = nullptr;
  }
  void set_captured(std::shared_ptr<CapturePoint> captured) {
    const std::lock_guard lock(mutex_);
    captured_ = std::move(captured);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<EventPoint> point_;
  std::shared_ptr<CapturePoint> captured_;
};

using EventTable = HandleTable<Event, CUevent, HandleKind::event>;
EventTable& events();

// Records `event` on `stream`, behind all that was submitted to it.
void record_event(Event& event, const std::shared_ptr<Stream>& stream);
// The stream's later work waits for the event's last record. Nothing when there is none.
void wait_event(Event& event, const std::shared_ptr<Stream>& stream);

// Ends the handles of a context's events.
void release_events(Context& context);

}  // namespace reprise::sim
