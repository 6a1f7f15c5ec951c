// Least recently used, what demand paging does: a baseline.
#include "analyzer/policies/least_recently_used.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

class Lru : public Policy {
 public:
  std::string_view name() const override { return "lru"; }
  Schedule schedule(const PolicyInput& input) const override {
    LeastRecentlyUsed chooser;
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& lru_policy() {
  static const Lru& policy = *new Lru;
  return policy;
}

}  // namespace reprise::analyzer
