// What the simulator looks up for a vertex, flat and small: its engine, its length, which vertices wait for it. Made
// once per simulation. Used by simulate.cpp only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/memgraph/build.h"
#include "analyzer/simulate/engines.h"

namespace reprise::analyzer {

struct TimedVertex {
  uint64_t length_ns = 0;
  CallIndex call{kNone};
  uint32_t op = kNone;  // number among the ops of its device; kNone: no op
  uint32_t link = 0;    // of an SSD's transfer, the one that it goes over
  uint32_t device = 0;
  Engines::Id engine = Engines::kNone;  // kNone: takes no time
  bool transfer = false;                // meets noise
  uint64_t map_ns = 0;                  // mapping, before it where it leaves the device, else behind it
  bool leaves = false;
};

struct TimedGraph {
  std::vector<TimedVertex> vertices;
  std::vector<uint32_t> successors_begin;  // vertex -> into successors; one more at the end
  std::vector<uint32_t> successors;        // distance * number of vertices + vertex
  std::vector<uint32_t> waits_now;         // vertex -> predecessors of the same iteration
  std::vector<uint32_t> waits_before;      // and of the one before
  std::vector<uint32_t> ops;               // device -> number of its ops
  std::vector<uint32_t> transfers;         // vertices that are no calls
};

TimedGraph time_graph(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const Engines& engines);

}  // namespace reprise::analyzer
