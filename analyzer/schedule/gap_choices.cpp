#include "analyzer/schedule/gap_choices.h"

#include <algorithm>

namespace reprise::analyzer {

GapChoices::GapChoices(const TaskGraph& graph, const Schedule& schedule, uint64_t capacity)
    : graph_(graph),
      uses_(graph.tensors.size()),
      end_(graph.tensors.size(), 0),
      departure_(graph.tensors.size(), Departure::release) {
  list_uses();
  room_.assign(size_t{ops_} + 1, 0);
  for (const Stay& stay : schedule.stays) read(stay);
  for (OpIndex op{1}; op < ops_; ++op) room_[op] += room_[op - 1];
  for (int64_t& room : room_) room += static_cast<int64_t>(capacity);
  list_gaps();
}

void GapChoices::list_uses() {
  start_ns_.push_back(0);
  for (CallIndex call{0}; call < graph_.calls.size(); ++call) {
    const GraphCall& entry = graph_.calls[call];
    op_of_call_.push_back(OpIndex{ops_});
    if (entry.call.kind != plan::CallKind::op) continue;
    for (const uint32_t tensor : entry.operands) {
      const auto is_in = [&](const std::vector<uint32_t>& list) {
        return std::binary_search(list.begin(), list.end(), tensor);
      };
      uses_[tensor].push_back({OpIndex{ops_}, is_in(entry.writes)      ? HostCopy::stale
                                              : is_in(entry.unchanged) ? HostCopy::by_facts
                                                                       : HostCopy::valid});
    }
    call_of_op_.push_back(call);
    start_ns_.push_back(start_ns_.back() + entry.call.duration_ns);
    ++ops_;
  }
  op_of_call_.push_back(OpIndex{ops_});
  for (OpIndex op{0}; op < ops_; ++op) {
    start_ns_.push_back(start_ns_.back() + graph_.calls[call_of_op_[op]].call.duration_ns);
  }
}

// Marks the uses within, and takes the room.
void GapChoices::read(const Stay& stay) {
  std::vector<GapUse>& uses = uses_[stay.tensor];
  const int64_t chunks = graph_.tensors[stay.tensor].chunk_count;
  const bool always = stay.arrival == Arrival::always;
  const OpIndex begin = always ? OpIndex{0} : op_of_call_[stay.begin];
  const OpIndex end = always ? OpIndex{ops_} : op_of_call_[stay.end];
  room_[begin] -= chunks;
  room_[end] += chunks;
  if (stay.wraps) room_[0] -= chunks;
  if (uses.empty()) {
    others_.push_back(stay);
    return;
  }
  const bool last = !stay.wraps && !always;
  if (last && stay.end >= end_[stay.tensor]) {
    end_[stay.tensor] = stay.end;
    departure_[stay.tensor] = stay.departure;
  }
  const auto within = [&](OpIndex op) { return stay.wraps ? op >= begin || op < end : op >= begin && op < end; };
  for (size_t i = 0; i < uses.size(); ++i) {
    const bool around = i + 1 == uses.size();
    if (around && !stay.wraps && !always) continue;
    const OpIndex next = uses[(i + 1) % uses.size()].op;
    // A stay that wraps covers the end of the iteration and its start, with a time away between them.
    const bool together = !stay.wraps || around || (uses[i].op < end) == (next < end);
    if (within(uses[i].op) && within(next) && together) uses[i].with_next = true;
  }
}

void GapChoices::list_gaps() {
  for (uint32_t tensor = 0; tensor < uses_.size(); ++tensor) {
    std::vector<GapUse>& uses = uses_[tensor];
    const bool stays = is_persistent(graph_.tensors[tensor]);
    for (size_t i = 0; i < uses.size(); ++i) {
      const bool around = i + 1 == uses.size();
      if (around && !stays) break;
      const OpIndex to = around ? uses[0].op + ops_ : uses[i + 1].op;
      if (to == uses[i].op + 1) continue;
      uses[i].gap = static_cast<uint32_t>(gaps_.size());
      gaps_.push_back({tensor, uses[i].op, to, !uses[i].with_next});
    }
  }
}

bool GapChoices::has_room(const Gap& gap) const {
  const int64_t needed = chunks(gap);
  for (OpIndex op = gap.from + 1; op < gap.to; ++op) {
    if (room(op) < needed) return false;
  }
  return true;
}

uint32_t GapChoices::gap_before(uint32_t tensor, OpIndex op) const {
  const std::vector<GapUse>& uses = uses_[tensor];
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[(i + 1) % uses.size()].op == op) return uses[i].gap;
  }
  return kNone;
}

void GapChoices::set_away(uint32_t index, bool away) {
  Gap& gap = gaps_[index];
  if (gap.away == away) return;
  gap.away = away;
  const int64_t change = away ? chunks(gap) : -chunks(gap);
  for (OpIndex op = gap.from + 1; op < gap.to; ++op) room_[op % ops_] += change;
}

// Is the tensor on the device from this use to the next one?
bool GapChoices::stays_behind(uint32_t tensor, size_t use) const {
  const GapUse& entry = uses_[tensor][use];
  return entry.gap == kNone ? entry.with_next : !gaps_[entry.gap].away;
}

Schedule GapChoices::schedule() const {
  std::vector<Stay> stays = others_;
  for (uint32_t tensor = 0; tensor < uses_.size(); ++tensor) {
    if (uses_[tensor].empty() || graph_.tensors[tensor].chunk_count == 0) continue;
    is_persistent(graph_.tensors[tensor]) ? add_persistent(tensor, stays) : add_transient(tensor, stays);
  }
  return schedule_of(graph_, std::move(stays));
}

void GapChoices::add_transient(uint32_t tensor, std::vector<Stay>& stays) const {
  const std::vector<GapUse>& uses = uses_[tensor];
  HostCopy host = HostCopy::stale;  // the memory was new
  for (size_t i = 0, first = 0; i < uses.size(); ++i) {
    host = std::min(host, uses[i].leaves);
    const bool last = i + 1 == uses.size();
    if (!last && stays_behind(tensor, i)) continue;
    Stay stay;
    stay.tensor = tensor;
    stay.begin = call_of_op_[uses[first].op];
    stay.end = last ? end_[tensor] : call_of_op_[uses[i].op] + 1;
    stay.arrival = first == 0 ? Arrival::first_touch : Arrival::reload;
    const bool released = last && departure_[tensor] == Departure::release;
    stay.departure = released ? Departure::release : departure_with(host);
    stay.not_to_ssd = uses[i].gap != kNone && gaps_[uses[i].gap].not_to_ssd;
    stays.push_back(stay);
    first = i + 1;
    host = HostCopy::valid;
  }
}

// Around the iteration, from behind a time away to the next one.
void GapChoices::add_persistent(uint32_t tensor, std::vector<Stay>& stays) const {
  const std::vector<GapUse>& uses = uses_[tensor];
  const size_t count = uses.size();
  size_t start = 0;
  while (start < count && stays_behind(tensor, start)) ++start;
  Stay stay;
  stay.tensor = tensor;
  if (start == count) {
    stay.end = static_cast<uint32_t>(graph_.calls.size());
    stay.arrival = Arrival::always;
    stay.departure = Departure::never;
    stays.push_back(stay);
    return;
  }
  HostCopy host = HostCopy::valid;
  HostCopy at_end = HostCopy::valid;
  for (size_t step = 1, first = start + 1; step <= count; ++step) {
    const size_t at = (start + step) % count;
    host = std::min(host, uses[at].leaves);
    if (at + 1 == count) at_end = host;
    if (stays_behind(tensor, at)) continue;
    const size_t begin = first % count;
    stay.begin = call_of_op_[uses[begin].op];
    stay.end = call_of_op_[uses[at].op] + 1;
    stay.departure = departure_with(host);
    stay.not_to_ssd = uses[at].gap != kNone && gaps_[uses[at].gap].not_to_ssd;
    stay.wraps = begin > at;
    stay.clean_at_start = stay.wraps && at_end == HostCopy::valid;
    stays.push_back(stay);
    first = at + 1;
    host = HostCopy::valid;
  }
}

}  // namespace reprise::analyzer
