// A schedule as a set of choices: is a tensor on the device between two of its uses, or away? What a search changes
// one by one. Used by local_search.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

// Between two uses of a tensor. Ops are counted from 0; `to` goes on counting into the next iteration.
struct Gap {
  uint32_t tensor = kNone;
  OpIndex from;
  OpIndex to;
  bool away = true;
  bool not_to_ssd = false;  // when it is away
};

class GapChoices {
 public:
  // `schedule` lists every stay from its first use to behind its last one and keeps to `capacity` chunks.
  GapChoices(const TaskGraph& graph, const Schedule& schedule, uint64_t capacity);

  const std::vector<Gap>& gaps() const { return gaps_; }  // by tensor, then by time; those with an op in between
  uint32_t op_count() const { return ops_; }
  uint64_t start_ns(OpIndex op) const { return start_ns_[op]; }  // of an op, if nothing waits; of two iterations
  int64_t chunks(const Gap& gap) const { return graph_.tensors[gap.tensor].chunk_count; }
  // Chunks that are free during the op. Negative: what is on the device does not fit.
  int64_t room(OpIndex op) const { return room_[op % ops_]; }
  bool has_room(const Gap& gap) const;                     // for its tensor to stay
  uint32_t gap_before(uint32_t tensor, OpIndex op) const;  // the one that ends with this use; kNone: none

  void set_away(uint32_t gap, bool away);
  void set_not_to_ssd(uint32_t gap, bool so) { gaps_[gap].not_to_ssd = so; }

  // Each op must have room.
  Schedule schedule() const;

 private:
  struct GapUse {
    OpIndex op{0};
    HostCopy leaves = HostCopy::valid;  // the best that a host copy is behind it
    bool with_next = false;             // on the device until the next one
    uint32_t gap = kNone;               // up to the next use, if there is an op in between
  };

  void list_uses();
  void read(const Stay& stay);
  void list_gaps();
  void add_transient(uint32_t tensor, std::vector<Stay>& stays) const;
  void add_persistent(uint32_t tensor, std::vector<Stay>& stays) const;
  bool stays_behind(uint32_t tensor, size_t use) const;

  const TaskGraph& graph_;
  uint32_t ops_ = 0;
  ByOp<CallIndex> call_of_op_;
  ByCall<OpIndex> op_of_call_;
  std::vector<uint64_t> start_ns_;
  std::vector<std::vector<GapUse>> uses_;  // by tensor
  std::vector<Stay> others_;               // of tensors that no op uses
  std::vector<uint32_t> end_;              // tensor -> where its last stay ended
  std::vector<Departure> departure_;       // and how
  std::vector<Gap> gaps_;
  std::vector<int64_t> room_;  // by op
};

}  // namespace reprise::analyzer
