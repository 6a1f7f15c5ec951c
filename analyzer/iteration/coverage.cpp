#include "analyzer/iteration/coverage.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::analyzer {
namespace {

struct Times {
  uint64_t ns = 0;
  uint64_t count = 0;
  void add(uint64_t more) {
    ns += more;
    ++count;
  }
  uint64_t mean() const { return count == 0 ? 0 : ns / count; }
};

uint64_t recorded_ns(const CallStream& stream, const trace::Op& op) {
  const auto found = stream.trace->activities.find(op.record.header.sequence);
  if (found == stream.trace->activities.end()) return 0;
  return found->second.end_ns > found->second.start_ns ? found->second.end_ns - found->second.start_ns : 0;
}

}  // namespace

Coverage::Coverage(const CallStream& stream, bool by_calls) : before_(stream.size() + 1, 0) {
  std::unordered_map<uint64_t, Times> of_signature;
  std::unordered_map<trace::OpKind, Times> of_kind;
  for (uint32_t call = 0; call < stream.size(); ++call) {
    const trace::Op* const op = stream.op(call);
    const uint64_t ns = op != nullptr && !by_calls ? recorded_ns(stream, *op) : 0;
    before_[call + 1] = ns;
    if (ns == 0) continue;
    timed_ = true;
    of_signature[op->record.signature].add(ns);
    of_kind[op->record.op].add(ns);
  }
  for (uint32_t call = 0; call < stream.size(); ++call) {
    uint64_t& weight = before_[call + 1];
    if (const trace::Op* const op = stream.op(call); weight == 0 && op != nullptr) {
      const auto known = of_signature.find(op->record.signature);
      weight = known != of_signature.end() ? known->second.mean() : of_kind[op->record.op].mean();
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
