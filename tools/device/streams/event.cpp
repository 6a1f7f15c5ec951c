#include "tools/device/streams/event.h"

#include "tools/device/engines/clock.h"
#include "tools/device/streams/operations.h"

namespace reprise::sim {
namespace {

class RecordOperation final : public Operation {
 public:
  explicit RecordOperation(std::shared_ptr<EventPoint> point) : point_(std::move(point)) {}
  OperationKind kind() const override { return OperationKind::record; }
  bool runs_after_failure() const override { return true; }
  void execute(const Execution& execution) const override {
    point_->time_ns.store(modelled_clock() ? execution.time_ns : now_ns(), std::memory_order_release);
  }

 private:
  std::shared_ptr<EventPoint> point_;
};

}  // namespace

EventTable& events() {
  static EventTable& table = *new EventTable;
  return table;
}

void record_event(Event& event, const std::shared_ptr<Stream>& stream) {
  auto point = std::make_shared<EventPoint>();
  point->stream = stream;
  point->position = stream->submit(std::make_shared<RecordOperation>(point));
  event.set_point(std::move(point));
}

void wait_event(Event& event, const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<EventPoint> point = event.point();
  if (point == nullptr || point->stream->reached(point->position)) return;
  stream->submit(empty_operation(), {{point->stream, point->position}});
}

void release_events(Context& context) {
  for (const auto& [handle, event] : events().all()) {
    if (&event->context == &context) events().remove(handle);
  }
}

}  // namespace reprise::sim
