// What the finder finds in a trace, and how its iteration begins. Callers: the tests of this folder.
#pragma once
#include <string>

#include "analyzer/iteration/finder.h"
#include "preload/trace/reader.h"

namespace reprise::analyzer::testing {

inline Result<Iteration> find(const trace::Trace& trace) {
  const CallStream stream = make_call_stream(trace);
  return find_iteration(stream, 1);  // even if it covers next to nothing
}

// The name of the first op of the iteration.
inline std::string first_op(const trace::Trace& trace, const Iteration& iteration) {
  const CallStream stream = make_call_stream(trace);
  for (uint32_t i = 0; i < iteration.call_count; ++i) {
    if (const trace::Op* op = stream.op(CallIndex(iteration.first_call + i)))
      return trace.functions[op->record.function - 1].name;
  }
  return "";
}

}  // namespace reprise::analyzer::testing
