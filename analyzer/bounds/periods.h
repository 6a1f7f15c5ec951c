// Inactive periods: the times between two uses of a tensor, in which it may be away from the device. Ops are counted
// from 0; what lies in the next iteration goes on counting. Used by the fluid bound and the policy that it guides.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

struct Period {
  OpIndex from;       // of the use before; the tensor may leave behind it
  OpIndex to;         // of the use behind, from < to <= from + ops; of a tail: the op behind the free
  bool tail = false;  // nothing uses the tensor any more before the program frees it: it need not come back
};

// What a tensor holds between two writes. One copy on the host serves all of its periods.
struct Version {
  uint32_t tensor = kNone;
  OpIndex written;              // by this op, below the number of ops; periods are counted on from it
  bool on_host = false;         // nothing ever writes it: the host has a copy for ever
  std::vector<Period> periods;  // by time, each with at least one op in between
};

struct Vitality {
  std::vector<Version> versions;  // those that have a period
  ByOp<CallIndex> call_of_op;
  ByOp<uint64_t> alive;  // bytes of chunked tensors alive, as the program asked
};

// G10's vitality analysis, with versions.
Vitality vitality_of(const TaskGraph& graph);

}  // namespace reprise::analyzer
