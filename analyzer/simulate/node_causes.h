// Why nodes of a simulation began when they did, where that is asked for. Used by simulate.cpp only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/simulate/engines.h"
#include "analyzer/simulate/simulate.h"

namespace reprise::analyzer {

class NodeCauses {
 public:
  // Without this call nothing is kept.
  void keep(size_t nodes, size_t engines) {
    causes_.assign(nodes, kNone);
    begun_ns_.assign(nodes, 0);
    last_on_.assign(engines, kNone);
  }

  // `cause`: the node that ended last of those that it waited for; kNone: the program has made the call.
  void released(uint32_t node, uint32_t cause, uint64_t now) {
    if (causes_.empty()) return;
    causes_[node] = cause;
    begun_ns_[node] = now;
  }
  void may_begin(uint32_t node, uint64_t now) {
    if (!causes_.empty()) begun_ns_[node] = now;
  }
  void begins(uint32_t node, Engines::Id engine, uint64_t now) {
    if (causes_.empty()) return;
    if (begun_ns_[node] < now) causes_[node] = last_on_[engine];
    begun_ns_[node] = now;
    last_on_[engine] = node;
  }

  // From `node` back to where the iteration before ended. Empty: nothing is kept.
  std::vector<CriticalStep> path(uint32_t node, uint64_t ended_before_ns, uint32_t vertices) const {
    std::vector<CriticalStep> path;
    while (!causes_.empty() && node != kNone && causes_[node] != kNone && path.size() < causes_.size()) {
      const uint32_t cause = causes_[node];
      path.push_back({node % vertices, cause % vertices});
      if (begun_ns_[cause] < ended_before_ns) break;
      node = cause;
    }
    return path;
  }

 private:
  std::vector<uint32_t> causes_;    // node -> what ended when it began, kNone: nothing
  std::vector<uint64_t> begun_ns_;  // node -> when it began; until then, when it could have begun
  std::vector<uint32_t> last_on_;   // engine -> node
};

}  // namespace reprise::analyzer
