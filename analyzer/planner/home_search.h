// Homes found by trial. Placement gives tensors the widest slack in the order that it takes them in, and does not know
// which waits that makes; the simulation of a candidate does. What the iteration waits for last is followed back
// through it: of the tensors that wait for others' chunks there, some are placed anew, and what is no slower is kept.
// Called by the portfolio for its best candidate.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/planner/candidate.h"

namespace reprise::analyzer {

// When each call starts by a candidate's prediction, strictly rising, and the end.
std::vector<uint64_t> start_times(const TaskGraph& graph, const PlanCandidate& candidate);

// `best`: of one device, with a home for each tensor. Simulates up to `tries` others and leaves the fastest one in
// `best`; returns how many. The same input gives the same answer.
uint32_t search_homes(const TaskGraph& graph, const Machine& machine, uint32_t tries, PlanCandidate& best);

}  // namespace reprise::analyzer
