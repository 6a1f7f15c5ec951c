// What a play of a schedule works on: the graph's ops, and each stay of the schedule in each of the rounds that are
// played. Called by the retimer, which plays, and by the stay mover, which looks at what came out.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/base/groups.h"
#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

constexpr uint32_t kPlayedRounds = 4;
constexpr uint32_t kNotYet = ~uint32_t{0};

// What all plays of a graph have in common. Ops are counted from 0.
struct PlayedGraph {
  explicit PlayedGraph(const TaskGraph& of);

  uint64_t duration(OpIndex op) const { return graph.calls[call_of_op[op % ops]].call.duration_ns; }

  // The last one of the ops `first` to `last` that writes, else the first one.
  uint32_t last_write(std::span<const uint32_t> writes_of_tensor, uint32_t first, uint32_t last) const;

  const TaskGraph& graph;
  uint32_t ops = 0;
  ByCall<OpIndex> op_of_call;  // the next one, for calls that are none
  ByOp<CallIndex> call_of_op;
  Groups writes;                 // by tensor, ops; also those that leave it as it was
  ByOp<int64_t> start_ns = {0};  // of each op in all rounds, if nothing waits
};

// One stay in one of the rounds that are simulated. Ops are counted over all rounds.
struct StayInstance {
  int64_t latest_ns = 0;  // start of a copy in that is in time if no kernel waits for another one
  uint64_t in_ns = 0;     // when the copy in ended
  uint32_t stay = 0;
  uint32_t chunks = 0;
  uint32_t first = 0;               // op of its first use
  uint32_t last = 0;                // of its last one
  uint32_t written = 0;             // of the last write within it, if only by its order, for the copy out
  uint32_t next = kNone;            // instance of the same tensor that comes back from the copy
  uint32_t blocked_until = 0;       // op before which there is no room up to the first use
  uint32_t reload_begin = kNotYet;  // op that had started last when the copy in began
  uint32_t offload_end = 0;         // op at hand when the copy out was done and its memory became free
  bool used = false;                // the last use is over
  bool out = false;                 // the copy out is done, or there is none
  bool in = false;                  // resident
  bool host = false;                // a copy is on the host
};

// What is played: the stays of one schedule, in each round.
class PlayedStays {
 public:
  explicit PlayedStays(const PlayedGraph& played) : played_(played) {}

  void list(const Schedule& schedule);

  const Schedule& schedule() const { return *schedule_; }
  const Stay& stay_of(const StayInstance& instance) const { return schedule_->stays[instance.stay]; }
  std::vector<StayInstance>& all() { return instances_; }
  const std::vector<StayInstance>& all() const { return instances_; }
  StayInstance& operator[](uint32_t number) { return instances_[number]; }
  const StayInstance& operator[](uint32_t number) const { return instances_[number]; }
  auto of_tensor(uint32_t tensor) const { return stays_of_[tensor]; }
  // By op: what begins there, ends there, is written there for the last time.
  auto first_at(OpIndex op) const { return first_[op]; }
  auto last_at(OpIndex op) const { return last_[op]; }
  auto written_at(OpIndex op) const { return written_[op]; }
  // Memory of what never leaves, and of what is there when the first round begins.
  int64_t chunks_always() const { return chunks_always_; }
  int64_t chunks_at_start() const { return chunks_at_start_; }

 private:
  void list_instances(std::span<const uint32_t> stays, std::span<const uint32_t> writes);
  uint32_t add_instance(uint32_t index, uint32_t first, uint32_t end, std::span<const uint32_t> writes,
                        uint32_t before);

  const PlayedGraph& played_;
  const Schedule* schedule_ = nullptr;
  std::vector<StayInstance> instances_;
  Groups stays_of_;                // by tensor
  Groups first_, last_, written_;  // instances, by op
  int64_t chunks_always_ = 0;
  int64_t chunks_at_start_ = 0;
};

}  // namespace reprise::analyzer
