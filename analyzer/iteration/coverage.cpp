#include "analyzer/iteration/coverage.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "preload/trace/median.h"

namespace reprise::analyzer {
namespace {

// For ops of which none has a time.
struct Mean {
  uint64_t ns = 0;
  uint64_t count = 0;
  void add(uint64_t more) {
    ns += more;
    ++count;
  }
  uint64_t value() const { return count == 0 ? 0 : ns / count; }
};

}  // namespace

Coverage::Coverage(const CallStream& stream, bool by_calls) : before_(stream.size() + 1, 0) {
  std::unordered_map<uint64_t, std::vector<uint64_t>> times;  // by signature
  std::unordered_map<trace::OpKind, Mean> of_kind;
  for (CallIndex call{0}; call < stream.size() && !by_calls; ++call) {
    const trace::Op* const op = stream.op(call);
    const uint64_t ns = op != nullptr ? stream.recorded_ns(*op) : 0;
    if (ns == 0) continue;
    timed_ = true;
    times[op->record.signature].push_back(ns);
    of_kind[op->record.op].add(ns);
  }
  // The one in the middle counts: an op that other work kept from running now and then outweighs no loop.
  std::unordered_map<uint64_t, uint64_t> usual;
  for (auto& [signature, all] : times) usual[signature] = trace::median(std::move(all));
  for (CallIndex call{0}; call < stream.size(); ++call) {
    uint64_t weight = 0;
    if (const trace::Op* const op = stream.op(call); op != nullptr) {
      const auto known = usual.find(op->record.signature);
      weight = known != usual.end() ? known->second : of_kind[op->record.op].value();
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
