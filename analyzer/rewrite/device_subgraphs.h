// Several devices share nothing but the host and the links, so each one's memory is planned on its own: on a subgraph
// that has its tensors alone and the ops that use them. Used by candidate.cpp and the planner; policies,
// placement and bounds know one device only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/machine/machine.h"
#include "analyzer/placement/layout.h"
#include "analyzer/schedule/schedule.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

struct DeviceSubgraph {
  TaskGraph graph;                  // for a single device; what other devices do takes no time in it
  std::vector<uint32_t> call_of;    // call of the subgraph -> of the whole graph
  std::vector<uint32_t> tensor_of;  // likewise
};

// One for each device; none where there is only one.
std::vector<DeviceSubgraph> device_subgraphs_of(const TaskGraph& graph);

// Schedules of the subgraphs, by device, as one of the whole graph.
Schedule merge_schedules(const TaskGraph& graph, const std::vector<DeviceSubgraph>& subgraphs,
                         const std::vector<Schedule>& schedules);

// place() on each device, with `chunks` each. Their chunks are numbered one device after the other.
std::optional<Layout> place_devices(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, PlacementMode mode,
                                    HomeOrder order, const std::vector<uint64_t>& start_ns);

// Those of the device that is bound most, and of links that devices share.
Bounds bounds_of_devices(const std::vector<DeviceSubgraph>& subgraphs, uint64_t capacity, const Machine& machine);

}  // namespace reprise::analyzer
