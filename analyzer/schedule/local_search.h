// Local search on stalls: where a played schedule keeps kernels waiting, one tensor stays on the device that used to
// leave, others leave in its place, or a copy no longer goes to the SSD; what plays no slower is kept. Called by the
// portfolio.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/schedule/retime.h"

namespace reprise::analyzer {

// Each of `starts` is as for retime(). Returns the best of what was found, retimed; nullopt: none of them can be played
// on this machine. `plays`: how often a schedule is played, about. In rounds, after each of which the worse half of the
// starts is given up. The same input gives the same result.
std::optional<RetimedSchedule> search_stalls(const TaskGraph& graph, const Machine& machine,
                                             const std::vector<Schedule>& starts, uint64_t capacity, uint32_t plays);

}  // namespace reprise::analyzer
