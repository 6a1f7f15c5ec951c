// One loop of several that a program has: which calls it makes, and how much of the program it is. Callers: the
// planner, reports.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/iteration/finder.h"

namespace reprise::analyzer {

// Which loop: how many calls it has, and which ones, wherever it is entered.
struct LoopCalls {
  uint64_t count = 0;  // 0: any loop
  uint64_t hash = 0;
  void add(uint64_t signature);
  bool operator==(const LoopCalls& other) const = default;
};

// As find_iteration(), of this loop alone, whatever else covers more. Where marks say where iterations start, they win.
Result<Iteration> find_loop(const CallStream& stream, const LoopCalls& loop);

// Is the iteration nearly all that the program does? Then what is said of it holds for the program.
inline constexpr double kNearlyAll = 0.8;
inline bool covers_nearly_all(const Iteration& iteration) { return iteration.coverage >= kNearlyAll; }

}  // namespace reprise::analyzer
