#include "analyzer/iteration/coverage.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::analyzer {
namespace {

struct Times {
  uint64_t ns = 0;
  uint64_t count = 0;
};

uint64_t recorded_ns(const CallStream& stream, const trace::Op& op) {
  const auto found = stream.trace->activities.find(op.record.header.sequence);
  if (found == stream.trace->activities.end()) return 0;
  return found->second.end_ns > found->second.start_ns ? found->second.end_ns - found->second.start_ns : 0;
}

}  // namespace

Coverage::Coverage(const CallStream& stream, bool by_calls) : before_(stream.size() + 1, 0) {
  std::unordered_map<uint64_t, Times> times;  // by signature
  for (uint32_t call = 0; call < stream.size(); ++call) {
    const trace::Op* const op = stream.op(call);
    const uint64_t ns = op != nullptr && !by_calls ? recorded_ns(stream, *op) : 0;
    before_[call + 1] = ns;
    if (ns == 0) continue;
    timed_ = true;
    Times& of_signature = times[op->record.signature];
    of_signature.ns += ns;
    ++of_signature.count;
  }
  for (uint32_t call = 0; call < stream.size(); ++call) {
    uint64_t& weight = before_[call + 1];
    if (const trace::Op* const op = stream.op(call); weight == 0 && op != nullptr) {
      const auto known = times.find(op->record.signature);
      if (known != times.end()) weight = known->second.ns / known->second.count;
    }
    weight = std::max<uint64_t>(weight, 1) + before_[call];  // a loop of what takes no time is one, too
  }
}

uint64_t Coverage::of(const std::vector<Run>& runs) const {
  uint64_t sum = 0;
  uint32_t counted_to = 0;
  for (const Run& run : runs) {
    const Run rest{std::max(run.begin, counted_to), run.end};
    if (rest.begin < rest.end) sum += of(rest);
    counted_to = std::max(counted_to, run.end);
  }
  return sum;
}

}  // namespace reprise::analyzer
