// Replays accesses of calls, in any number of consecutive iterations, through the hazards of every resource. The
// TaskGraph's edges and the MemGraph's data edges both come from here, the latter with transfers in between.
#pragma once
#include <vector>

#include "analyzer/taskgraph/graph.h"
#include "analyzer/taskgraph/hazards.h"

namespace reprise::analyzer {

struct Dependency {
  Stamp stamp;
  plan::EdgeKind kind = plan::EdgeKind::data;
};

class Flow {
 public:
  explicit Flow(const TaskGraph& graph);

  // An op: what it must wait for is appended to `before`. The first op that touches a transient tensor counts as a
  // writer of all of it, since the memory there is new.
  void op(CallIndex call, Stamp stamp, std::vector<Dependency>& before);
  // A transfer between a tensor and its host copy.
  void offload(uint32_t tensor, Stamp stamp, std::vector<Dependency>& before);
  void reload(uint32_t tensor, Stamp stamp, std::vector<Dependency>& before);
  // The program's free: the next instance of the tensor starts anew.
  void release(uint32_t tensor);
  // What must be complete before a tensor's memory may be used for something else.
  std::vector<Stamp> frontier(uint32_t tensor) const;

 private:
  struct TensorFlow {
    Hazards bytes;
    Hazards host;
    bool touched = false;
  };
  void access(CallIndex call, const plan::OpAccess& access, Stamp stamp);
  void take(std::vector<Dependency>& before, plan::EdgeKind kind);
  void order_by_barriers(CallIndex call, Stamp stamp, std::vector<Dependency>& before);

  const TaskGraph& graph_;
  std::vector<TensorFlow> tensors_;
  std::vector<Hazards> foreign_;
  std::vector<Stamp> scratch_;
  std::vector<Stamp> since_barrier_;
  Stamp barrier_;
  bool has_barrier_ = false;
};

}  // namespace reprise::analyzer
