// What a schedule could look like in time: a simulation in which memory is a number of chunks, not particular ones, so
// that a copy starts as soon as link and room allow. Its times become the schedule's: a stay lasts until its copy is
// out, and the next one begins when its copy starts. Called by policies and the planner, which then place and build.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

// An op that could not start when the one before had ended.
struct Wait {
  OpIndex op{0};  // from 0
  uint64_t ns = 0;
  uint32_t tensor = kNone;  // whose copy in came last; kNone: memory was missing, for it or for what the op makes
};

struct RetimedSchedule {
  Schedule schedule;          // as given, with the beginnings and ends of stays moved
  uint64_t iteration_ns = 0;  // in the steady state, kernels in the recorded order
  std::vector<Wait> waits;    // of one iteration, by op
};

class Retimer;

// Plays schedules of one graph, one after the other, in memory that it keeps: a search plays hundreds.
class SchedulePlayer {
 public:
  // Both must outlive the player.
  SchedulePlayer(const TaskGraph& graph, const Machine& machine, uint64_t capacity);
  SchedulePlayer(SchedulePlayer&& other) noexcept;
  ~SchedulePlayer();

  // `schedule` lists every stay from its first use to behind its last one and keeps to `capacity` chunks; so does the
  // result. nullopt: an iteration takes more than `most_ns`, which is known before everything has been played.
  std::optional<RetimedSchedule> play(const Schedule& schedule, uint64_t most_ns);

 private:
  std::unique_ptr<Retimer> retimer_;
};

// One schedule, however long it takes.
RetimedSchedule retime(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity);

}  // namespace reprise::analyzer
