#include "tools/report/view/residency.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/plan/vertex_kinds.h"

namespace reprise::report {
namespace {

using plan::kNone;
using plan::Plan;

uint64_t span_of(const Plan& plan) {
  uint64_t span = plan.predicted_ns;
  for (const plan::Vertex& vertex : plan.vertices) span = std::max(span, vertex.predicted_end_ns);
  return span;
}

// Predicted time of a call; allocate calls happen when the next op is reached.
std::vector<uint64_t> call_times(const Plan& plan, uint64_t span) {
  std::vector<uint64_t> times(plan.calls.size(), span);
  uint64_t next = span;
  for (size_t i = plan.calls.size(); i-- > 0;) {
    const plan::Call& call = plan.calls[i];
    if (call.vertex < plan.vertices.size()) next = std::min(next, plan.vertices[call.vertex].predicted_start_ns);
    times[i] = call.vertex < plan.vertices.size() ? plan.vertices[call.vertex].predicted_start_ns : next;
  }
  return times;
}

void add_lives(const Plan& plan, uint64_t span, std::vector<TensorView>& views) {
  const std::vector<uint64_t> times = call_times(plan, span);
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    const plan::Tensor& tensor = plan.tensors[i];
    views[i].tensor = i;
    views[i].life.start_ns = tensor.allocate_call < times.size() ? times[tensor.allocate_call] : 0;
    views[i].life.end_ns = tensor.free_call < times.size() ? times[tensor.free_call] : span;
  }
}

void add_uses(const Plan& plan, std::vector<TensorView>& views) {
  for (const plan::Call& call : plan.calls) {
    if (call.kind != plan::CallKind::op || call.vertex >= plan.vertices.size()) continue;
    const plan::Vertex& vertex = plan.vertices[call.vertex];
    for (const plan::OpAccess& access : call.accesses) {
      if (access.tensor >= views.size()) continue;
      views[access.tensor].uses.push_back({vertex.predicted_start_ns, vertex.predicted_end_ns});
    }
  }
  for (TensorView& view : views) {
    std::sort(view.uses.begin(), view.uses.end(),
              [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  }
}

void add_moves(const Plan& plan, std::vector<TensorView>& views) {
  for (const plan::Vertex& vertex : plan.vertices) {
    if (!plan::copies(vertex.kind) || vertex.tensor >= views.size()) continue;
    views[vertex.tensor].moves.push_back(
        {plan::copies_out(vertex.kind), {vertex.predicted_start_ns, vertex.predicted_end_ns}});
  }
  for (TensorView& view : views) {
    std::sort(view.moves.begin(), view.moves.end(),
              [](const Move& a, const Move& b) { return a.time.start_ns < b.time.start_ns; });
  }
}

// A tensor begins or ends to occupy its chunks.
struct Change {
  uint64_t time_ns;
  uint32_t tensor;
  uint32_t placement;  // kNone: it ends
};

std::vector<Change> changes_of(const Plan& plan) {
  std::vector<Change> changes;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (plan::copies_out(vertex.kind) || plan::frees(vertex.kind)) {
      changes.push_back({vertex.predicted_end_ns, vertex.tensor, kNone});
    }
    for (const plan::Acquire& acquire : vertex.acquires) {
      changes.push_back({vertex.predicted_start_ns, acquire.tensor, acquire.placement});
    }
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    return a.placement == kNone && b.placement != kNone;  // room is made before it is taken
  });
  return changes;
}

// Sweeps over the iteration. Chunks that another tensor takes are lost to their occupant without a vertex of its own
// when its content need not be kept.
class Sweep {
 public:
  Sweep(const Plan& plan, std::vector<TensorView>& views)
      : plan_(plan), views_(views), occupant_(plan.chunk_count, kNone), open_(plan.tensors.size(), false) {}

  void run(uint64_t span) {
    for (uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      const plan::Tensor& tensor = plan_.tensors[i];
      if (tensor.resident_at_start || (tensor.chunk_count == 0 && tensor.allocate_call == kNone))
        begin(i, tensor.home, 0);
      if (tensor.chunk_count == 0) views_[i].resident = {views_[i].life};
    }
    for (const Change& change : changes_of(plan_)) {
      if (change.tensor >= views_.size()) continue;
      if (change.placement == kNone) {
        end(change.tensor, change.time_ns);
      } else {
        begin(change.tensor, change.placement, change.time_ns);
      }
    }
    for (uint32_t i = 0; i < views_.size(); ++i) end(i, span);
  }

 private:
  void begin(uint32_t tensor, uint32_t placement, uint64_t time_ns) {
    if (plan_.tensors[tensor].chunk_count == 0) return;
    if (placement < plan_.placements.size()) {
      for (const uint32_t chunk : plan_.placements[placement].chunks) {
        if (chunk >= occupant_.size()) continue;
        const uint32_t before = occupant_[chunk];
        if (before != kNone && before != tensor) end(before, time_ns);
        occupant_[chunk] = tensor;
      }
    }
    if (open_[tensor]) return;
    open_[tensor] = true;
    views_[tensor].resident.push_back({time_ns, time_ns});
  }
  void end(uint32_t tensor, uint64_t time_ns) {
    if (!open_[tensor]) return;
    open_[tensor] = false;
    views_[tensor].resident.back().end_ns = std::max(time_ns, views_[tensor].resident.back().start_ns);
  }

  const Plan& plan_;
  std::vector<TensorView>& views_;
  std::vector<uint32_t> occupant_;
  std::vector<bool> open_;
};

struct Step {
  uint64_t time_ns;
  int64_t bytes;
};

Curve accumulate(std::vector<Step> steps, int64_t base, uint64_t span) {
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.bytes < b.bytes;
  });
  Curve curve = {{0, static_cast<uint64_t>(base)}};
  int64_t level = base;
  for (const Step& step : steps) {
    level += step.bytes;
    const uint64_t value = level > 0 ? static_cast<uint64_t>(level) : 0;
    if (curve.back().first == step.time_ns) {
      curve.back().second = value;
    } else {
      curve.emplace_back(step.time_ns, value);
    }
  }
  if (curve.back().first < span) curve.emplace_back(span, curve.back().second);
  return curve;
}

}  // namespace

std::vector<TensorView> planned_views(const Plan& plan) {
  std::vector<TensorView> views(plan.tensors.size());
  const uint64_t span = span_of(plan);
  add_lives(plan, span, views);
  add_uses(plan, views);
  add_moves(plan, views);
  Sweep(plan, views).run(span);
  return views;
}

Curve planned_memory(const Plan& plan, const std::vector<TensorView>& views) {
  const uint64_t span = span_of(plan);
  std::vector<Step> steps;
  for (const TensorView& view : views) {
    const auto bytes = static_cast<int64_t>(plan.tensors[view.tensor].chunk_count * plan.chunk_bytes);
    if (bytes == 0) continue;
    for (const Interval& it : view.resident) {
      steps.push_back({it.start_ns, bytes});
      if (it.end_ns < span)
        steps.push_back({it.end_ns, -bytes});  // what is resident at the end stays for the next iteration
    }
  }
  return accumulate(std::move(steps), static_cast<int64_t>(plan.reserved_bytes), span);
}

Curve unmanaged_memory(const Plan& plan) {
  int64_t base = 0;
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.allocate_call == kNone) base += static_cast<int64_t>(tensor.size);
  }
  std::vector<Step> steps;
  uint64_t now = 0;
  // Where an allocation stands as several tensors, those that are inserted are the program's memory, too.
  const bool split = plan::has_split_tensors(plan);
  for (const plan::Call& call : plan.calls) {
    if (call.kind == plan::CallKind::op) {
      if (call.recompute_of == kNone) now += call.duration_ns;
    } else if ((!call.inserted || split) && call.tensor < plan.tensors.size()) {
      const auto size = static_cast<int64_t>(plan.tensors[call.tensor].size);
      const bool more = call.kind == plan::CallKind::allocate || call.kind == plan::CallKind::allocate_handover;
      steps.push_back({now, more ? size : -size});
    }
  }
  return accumulate(std::move(steps), base, now);
}

Curve recorded_memory_by_clock(const trace::Trace& trace) {
  std::unordered_map<uint64_t, uint64_t> live;
  std::vector<Step> steps;
  uint64_t last = 0;
  for (const trace::Event& event : trace.events) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
      const trace::AllocateRecord& record = allocate->record;
      if (record.origin == trace::Origin::host) continue;
      live[record.allocation] = record.size;
      steps.push_back({record.time_ns, static_cast<int64_t>(record.size)});
    } else if (const auto* release = std::get_if<trace::Free>(&event)) {
      const auto found = live.find(release->record.allocation);
      if (found == live.end()) continue;
      steps.push_back({release->record.time_ns, -static_cast<int64_t>(found->second)});
      live.erase(found);
    } else if (const auto* op = std::get_if<trace::Op>(&event)) {
      last = std::max(last, op->record.time_ns);
    }
  }
  if (steps.empty()) return {};
  Curve curve = accumulate(std::move(steps), 0, last);
  curve.erase(curve.begin());  // the point at time 0, long before the program
  return curve;
}

Curve recorded_memory(const trace::Trace& trace) {
  Curve curve = recorded_memory_by_clock(trace);
  const uint64_t origin = curve.empty() ? 0 : curve.front().first;
  for (auto& [time, bytes] : curve) time -= origin;
  return curve;
}

std::vector<Interval> recorded_pauses(const trace::Trace& trace) {
  std::vector<Interval> pauses;
  const auto time_of = [](const trace::Event& event) {
    return std::visit([](const auto& one) { return one.record.time_ns; }, event);
  };
  for (const trace::GapRecord& pause : trace.pauses) {
    const auto before = [&](const trace::Event& event) { return trace::sequence_of(event) <= pause.after_sequence; };
    const auto behind = std::partition_point(trace.events.begin(), trace.events.end(), before);
    if (behind == trace.events.begin() || behind == trace.events.end()) continue;
    pauses.push_back({time_of(*(behind - 1)), time_of(*behind)});
  }
  return pauses;
}

uint64_t highest(const Curve& curve) {
  uint64_t result = 0;
  for (const auto& [time, value] : curve) result = std::max(result, value);
  return result;
}

Curve thinned(const Curve& curve, size_t count) {
  if (curve.size() <= count || count < 4) return curve;
  const uint64_t origin = curve.front().first;
  const uint64_t width = std::max<uint64_t>(1, (curve.back().first - origin) / count);
  Curve result;
  uint64_t bucket = ~uint64_t{0};
  for (const auto& [time, value] : curve) {
    const uint64_t here = (time - origin) / width;
    if (here != bucket) {
      result.emplace_back(time, value);
      bucket = here;
    } else {
      result.back().second = std::max(result.back().second, value);
    }
  }
  result.back().first = curve.back().first;
  return result;
}

}  // namespace reprise::report
