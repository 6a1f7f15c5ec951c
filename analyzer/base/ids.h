// Small words that every part of the analyzer shares.
#pragma once
#include <cstdint>

#include "analyzer/plan/plan.h"
#include "preload/trace/format.h"

namespace reprise::analyzer {

using plan::kNone;

// Does Reprise move this memory? The rest (pinned host memory, managed memory, module globals) is known but left alone.
inline bool is_managed(trace::Origin origin) {
  return origin == trace::Origin::alloc || origin == trace::Origin::pitched || origin == trace::Origin::async ||
         origin == trace::Origin::pool;
}

inline uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }
inline uint64_t round_up(uint64_t value, uint64_t to) { return divide_up(value, to) * to; }

}  // namespace reprise::analyzer
