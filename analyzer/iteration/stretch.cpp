#include "analyzer/iteration/stretch.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace reprise::analyzer {

trace::Trace stretch_from(trace::Trace trace, uint64_t sequence) {
  if (sequence == 0) return trace;
  const auto before = [&](const trace::Event& event) { return trace::sequence_of(event) < sequence; };
  std::unordered_set<uint64_t> freed;
  for (const trace::Event& event : trace.events) {
    const auto* const free = std::get_if<trace::Free>(&event);
    if (free != nullptr && before(event)) freed.insert(free->record.allocation);
  }
  std::erase_if(trace.events, [&](const trace::Event& event) {
    const auto* const allocate = std::get_if<trace::Allocate>(&event);
    return before(event) && (allocate == nullptr || freed.count(allocate->record.allocation) != 0);
  });
  const auto over = [&](const trace::GapRecord& gap) { return gap.header.sequence <= sequence; };
  std::erase_if(trace.gaps, over);
  std::erase_if(trace.pauses, over);
  return trace;
}

trace::Trace stretch_until(trace::Trace trace, uint64_t sequence) {
  std::erase_if(trace.events, [&](const trace::Event& event) { return trace::sequence_of(event) >= sequence; });
  const auto behind = [&](const trace::GapRecord& gap) { return gap.header.sequence >= sequence; };
  std::erase_if(trace.gaps, behind);
  std::erase_if(trace.pauses, behind);
  return trace;
}

}  // namespace reprise::analyzer
