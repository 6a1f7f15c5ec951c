#include "analyzer/schedule/played_stays.h"

#include <algorithm>

namespace reprise::analyzer {

PlayedGraph::PlayedGraph(const TaskGraph& of) : graph(of), op_of_call(of.calls.size() + 1) {
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    op_of_call[call] = OpIndex{ops};
    if (graph.calls[call].call.kind != plan::CallKind::op) continue;
    call_of_op.push_back(call);
    ++ops;
  }
  op_of_call.back() = OpIndex{ops};
  writes.assign(graph.tensors.size(), [&](auto&& put) {
    for (OpIndex op{0}; op < ops; ++op) {
      const GraphCall& entry = graph.calls[call_of_op[op]];
      for (const auto* list : {&entry.writes, &entry.unchanged}) {
        for (const uint32_t tensor : *list) put(tensor, op);
      }
    }
  });
  for (OpIndex op{0}; op < (kPlayedRounds + 1) * ops; ++op) {
    start_ns.push_back(start_ns.back() + static_cast<int64_t>(duration(op)));
  }
}

uint32_t PlayedGraph::last_write(std::span<const uint32_t> writes_of_tensor, uint32_t first, uint32_t last) const {
  if (writes_of_tensor.empty()) return first;
  for (uint32_t round = last / ops + 1; round-- > first / ops;) {
    const auto behind = std::upper_bound(writes_of_tensor.begin(), writes_of_tensor.end(), last - round * ops);
    if (behind != writes_of_tensor.begin()) return std::max(first, *std::prev(behind) + round * ops);
  }
  return first;
}

void PlayedStays::list(const Schedule& schedule) {
  schedule_ = &schedule;
  instances_.clear();
  chunks_always_ = chunks_at_start_ = 0;
  stays_of_.assign(played_.graph.tensors.size(), [&](auto&& put) {
    for (uint32_t i = 0; i < schedule.stays.size(); ++i) put(schedule.stays[i].tensor, i);
  });
  for (uint32_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
    if (!stays_of_[tensor].empty()) list_instances(stays_of_[tensor], played_.writes[tensor]);
  }
  const auto group = [&](Groups& by_op, auto&& op_of) {
    by_op.assign(size_t{kPlayedRounds + 1} * played_.ops, [&](auto&& put) {
      for (uint32_t i = 0; i < instances_.size(); ++i) {
        if (const OpIndex op{op_of(instances_[i])}; op != kNone) put(op, i);
      }
    });
  };
  // What is there at the start does not begin.
  group(first_, [](const StayInstance& one) { return one.in ? kNone : one.first; });
  group(last_, [](const StayInstance& one) { return one.last; });
  group(written_, [](const StayInstance& one) { return one.out ? kNone : one.written; });
}

void PlayedStays::list_instances(std::span<const uint32_t> stays, std::span<const uint32_t> writes) {
  uint32_t before = kNone;
  if (schedule_->stays[stays[0]].arrival == Arrival::always) {
    chunks_always_ += played_.graph.tensors[schedule_->stays[stays[0]].tensor].chunk_count;
    return;
  }
  // A stay that wraps into the first round.
  const Stay& wrapping = schedule_->stays[stays.back()];
  if (wrapping.wraps) before = add_instance(stays.back(), 0, played_.op_of_call[wrapping.end], writes, before);
  for (uint32_t round = 0; round < kPlayedRounds; ++round) {
    const uint32_t base = round * played_.ops;
    for (const uint32_t index : stays) {
      const Stay& stay = schedule_->stays[index];
      const uint32_t end = played_.op_of_call[stay.end] + base + (stay.wraps ? played_.ops : 0);
      before = add_instance(index, played_.op_of_call[stay.begin] + base, end, writes, before);
    }
  }
}

uint32_t PlayedStays::add_instance(uint32_t index, uint32_t first, uint32_t end, std::span<const uint32_t> writes,
                                   uint32_t before) {
  const Stay& stay = schedule_->stays[index];
  const auto number = static_cast<uint32_t>(instances_.size());
  StayInstance instance;
  instance.stay = index;
  instance.first = first;
  instance.last = std::max(end, first + 1) - 1;
  instance.chunks = played_.graph.tensors[stay.tensor].chunk_count;
  instance.out = !has_offload(stay.departure);
  instance.host = before == kNone;
  instance.written = played_.last_write(writes, first, instance.last);
  instance.in = stay.wraps && first == 0 && before == kNone;
  if (instance.in) chunks_at_start_ += instance.chunks;
  instances_.push_back(instance);
  if (before != kNone) instances_[before].next = number;
  return number;
}

}  // namespace reprise::analyzer
