// Whose turn it is: which node an engine takes next, and how far ahead ops may be issued. Used by simulate.cpp only.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/simulate/engines.h"
#include "analyzer/simulate/ready_set.h"
#include "analyzer/simulate/timing.h"

namespace reprise::analyzer {

// By engine: the nodes that are ready, by priority; or all of its nodes in an order that is fixed.
class EngineTurns {
 public:
  EngineTurns(Engines::Id engines, uint32_t nodes) : queues_(engines, ReadySet(nodes)), fixed_(engines) {}

  void fix(Engines::Id engine, std::vector<uint32_t> order) {
    fixed_[engine].active = true;
    fixed_[engine].order = std::move(order);
  }
  // The node is ready.
  void put(Engines::Id engine, uint32_t node) {
    if (!fixed_[engine].active) queues_[engine].insert(node);
  }
  // kNone: none is ready, or not the next one of the order, by what nodes still wait for.
  uint32_t next(Engines::Id engine, const std::vector<uint32_t>& waiting) const {
    const Fixed& fixed = fixed_[engine];
    if (!fixed.active) return queues_[engine].empty() ? kNone : queues_[engine].least();
    if (fixed.next == fixed.order.size() || waiting[fixed.order[fixed.next]] != 0) return kNone;
    return fixed.order[fixed.next];
  }
  void take(Engines::Id engine, uint32_t node) {
    if (fixed_[engine].active) {
      ++fixed_[engine].next;
    } else {
      queues_[engine].erase(node);
    }
  }

 private:
  struct Fixed {
    bool active = false;
    size_t next = 0;
    std::vector<uint32_t> order;
  };

  std::vector<ReadySet> queues_;
  std::vector<Fixed> fixed_;
};

// The ops of each device, over all rounds: none is issued that stands a window or more behind the first one that has
// not started.
class IssueWindow {
 public:
  // `ops`: of each device; must outlive it.
  IssueWindow(const std::vector<uint32_t>& ops, uint32_t rounds, uint32_t window)
      : ops_(ops), window_(window), started_(ops.size()), issued_(ops.size(), 0) {
    for (size_t device = 0; device < ops.size(); ++device) started_[device].assign(size_t{ops[device]} * rounds, 0);
  }

  bool is_behind(const TimedVertex& op, uint32_t round) const {
    return index(op, round) >= issued_[op.device] + window_;
  }
  void issue(const TimedVertex& op, uint32_t round) {
    std::vector<uint8_t>& started = started_[op.device];
    size_t& issued = issued_[op.device];
    started[index(op, round)] = 1;
    while (issued < started.size() && started[issued] != 0) ++issued;
  }

 private:
  size_t index(const TimedVertex& op, uint32_t round) const { return size_t{round} * ops_[op.device] + op.op; }

  const std::vector<uint32_t>& ops_;
  const uint32_t window_;
  std::vector<std::vector<uint8_t>> started_;  // device, index
  std::vector<size_t> issued_;                 // device -> all its ops below have started
};

}  // namespace reprise::analyzer
