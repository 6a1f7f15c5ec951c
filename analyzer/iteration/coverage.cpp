#include "analyzer/iteration/coverage.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::analyzer {
namespace {

// Recorded times of equal ops. The one in the middle counts for each: one that other work kept from running now and
// then outweighs no loop.
class Times {
 public:
  void add(uint64_t ns) { times_.push_back(ns); }
  void settle() {
    const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
    std::nth_element(times_.begin(), middle, times_.end());
    median_ = *middle;
  }
  uint64_t median() const { return median_; }

 private:
  std::vector<uint64_t> times_;
  uint64_t median_ = 0;
};

// For ops of which none has a time.
struct Mean {
  uint64_t ns = 0;
  uint64_t count = 0;
  uint64_t value() const { return count == 0 ? 0 : ns / count; }
};

uint64_t recorded_ns(const CallStream& stream, const trace::Op& op) {
  const auto found = stream.trace->activities.find(op.record.header.sequence);
  if (found == stream.trace->activities.end()) return 0;
  return found->second.end_ns > found->second.start_ns ? found->second.end_ns - found->second.start_ns : 0;
}

}  // namespace

Coverage::Coverage(const CallStream& stream, bool by_calls) : before_(stream.size() + 1, 0) {
  std::unordered_map<uint64_t, Times> of_signature;
  std::unordered_map<trace::OpKind, Mean> of_kind;
  for (uint32_t call = 0; call < stream.size() && !by_calls; ++call) {
    const trace::Op* const op = stream.op(call);
    const uint64_t ns = op != nullptr ? recorded_ns(stream, *op) : 0;
    if (ns == 0) continue;
    timed_ = true;
    of_signature[op->record.signature].add(ns);
    of_kind[op->record.op].ns += ns;
    ++of_kind[op->record.op].count;
  }
  for (auto& [signature, times] : of_signature) times.settle();
  for (uint32_t call = 0; call < stream.size(); ++call) {
    uint64_t weight = 0;
    if (const trace::Op* const op = stream.op(call); op != nullptr) {
      const auto known = of_signature.find(op->record.signature);
      weight = known != of_signature.end() ? known->second.median() : of_kind[op->record.op].value();
    }
    before_[call + 1] = std::max<uint64_t>(weight, 1) + before_[call];  // a loop of what takes no time is one, too
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
