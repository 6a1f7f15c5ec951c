// DISCO and TURNIP: evict what is needed again furthest in the future (Belady), counted cyclically.
#include "analyzer/policies/furthest_next_use.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

class Disco : public Policy {
 public:
  std::string_view name() const override { return "disco"; }
  Schedule schedule(const PolicyInput& input) const override {
    FurthestNextUse chooser;
    return walk(input.graph, {input.capacity, input.carry_visitors}, chooser);
  }
};

}  // namespace

const Policy& disco_policy() {
  static const Disco& policy = *new Disco;
  return policy;
}

}  // namespace reprise::analyzer
