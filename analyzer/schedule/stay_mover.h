// Turns what a play has shown into a schedule: stays last until their copies out are done, and the next ones begin when
// their copies in start. Called by the retimer.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/schedule/played_stays.h"

namespace reprise::analyzer {

// Moves the stays of a schedule that was played to where they began and ended in the last round but one, as far as
// there is room.
class StayMover {
 public:
  // `room`: memory that it may use for its counts.
  StayMover(const PlayedGraph& played, const PlayedStays& stays, int64_t capacity, std::vector<int64_t>& room);

  void move(Schedule& schedule);

 private:
  void move_ends(Schedule& schedule);
  void go_on(Stay& stay, OpIndex to);
  void move_begins(Schedule& schedule);

  const PlayedGraph& played_;
  const TaskGraph& graph_;
  const PlayedStays& stays_;
  const uint32_t ops_;
  std::vector<int64_t>& room_;   // by op
  std::vector<uint32_t> order_;  // instances of the round that is copied
};

}  // namespace reprise::analyzer
