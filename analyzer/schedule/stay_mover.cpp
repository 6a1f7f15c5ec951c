#include "analyzer/schedule/stay_mover.h"

#include <algorithm>

namespace reprise::analyzer {

StayMover::StayMover(const PlayedGraph& played, const PlayedStays& stays, int64_t capacity, std::vector<int64_t>& room)
    : played_(played), graph_(played.graph), stays_(stays), ops_(played.ops), room_(room) {
  room_.assign(size_t{ops_} + 1, 0);
  room_[0] = capacity - stays.chunks_always();
  for (const Stay& stay : stays.schedule().stays) {
    if (stay.arrival == Arrival::always) continue;
    const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
    const uint32_t begin = played_.op_of_call[stay.begin];
    const uint32_t end = played_.op_of_call[stay.end];
    room_[stay.wraps ? 0 : begin] -= chunks;
    room_[end] += chunks;
    if (stay.wraps) room_[begin] -= chunks;
  }
  for (OpIndex op{1}; op < ops_; ++op) room_[op] += room_[op - 1];
  for (uint32_t number = 0; number < stays_.all().size(); ++number) {
    if (stays_[number].first / ops_ == kPlayedRounds - 2) order_.push_back(number);
  }
}

// Ends first: memory must not be given away before it is free.
void StayMover::move(Schedule& schedule) {
  move_ends(schedule);
  move_begins(schedule);
  sort_stays(schedule);
}

void StayMover::move_ends(Schedule& schedule) {
  for (const uint32_t number : order_) {
    const StayInstance& instance = stays_[number];
    Stay& stay = schedule.stays[instance.stay];
    if (!has_offload(stay.departure) || stay.wraps) continue;
    const uint32_t base = (kPlayedRounds - 2) * ops_;
    const uint32_t to = instance.offload_end <= base ? 0 : instance.offload_end - base;
    OpIndex op{played_.op_of_call[stay.end]};
    while (op < std::min(to, ops_) && room_[op] >= instance.chunks) room_[op++] -= instance.chunks;
    // The program's free takes the contents away: the copy out stands before it.
    const plan::Tensor& tensor = graph_.tensors[stay.tensor];
    const auto calls = static_cast<uint32_t>(graph_.calls.size());
    if (op > played_.op_of_call[stay.end])
      stay.end =
          std::min(op == ops_ ? calls : played_.call_of_op[op], is_persistent(tensor) ? calls : tensor.free_call);
    if (op == ops_ && to > ops_) go_on(stay, OpIndex{to - ops_});
  }
}

// The copy out ends in the next iteration, at op `to`: so does the stay, if there is room, and no other one of the
// tensor has begun.
void StayMover::go_on(Stay& stay, OpIndex to) {
  if (!is_persistent(graph_.tensors[stay.tensor])) return;
  OpIndex limit{ops_ - 1};
  for (const uint32_t other : stays_.of_tensor(stay.tensor)) {
    limit = std::min(limit, played_.op_of_call[stays_.schedule().stays[other].begin]);
  }
  const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
  OpIndex op{0};
  while (op < std::min(to, limit) && room_[op] >= chunks) room_[op++] -= chunks;
  if (op == 0) return;
  stay.wraps = true;
  stay.clean_at_start = false;
  stay.end = played_.call_of_op[op];
}

void StayMover::move_begins(Schedule& schedule) {
  std::vector<uint32_t> limit(graph_.tensors.size(), 0);  // where the tensor's stay before ends
  for (const Stay& stay : schedule.stays) {
    if (stay.wraps) limit[stay.tensor] = played_.op_of_call[stay.end];
  }
  for (const uint32_t number : order_) {
    const StayInstance& instance = stays_[number];
    Stay& stay = schedule.stays[instance.stay];
    const uint32_t base = (kPlayedRounds - 2) * ops_;
    const uint32_t floor = limit[stay.tensor];
    if (!stay.wraps) limit[stay.tensor] = played_.op_of_call[stay.end];
    if (stay.arrival != Arrival::reload || instance.reload_begin == kNotYet) continue;
    const uint32_t from = instance.reload_begin <= base ? 0 : instance.reload_begin - base;
    OpIndex op{played_.op_of_call[stay.begin]};
    while (op > std::max(from, floor) && room_[op - 1] >= instance.chunks) room_[--op] -= instance.chunks;
    if (op < played_.op_of_call[stay.begin]) stay.begin = played_.call_of_op[op];
  }
}

}  // namespace reprise::analyzer
