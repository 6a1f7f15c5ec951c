#include <string>

#include "analyzer/policies/policy.h"

namespace reprise::analyzer {

const std::vector<const Policy*>& all_policies() {
  static const std::vector<const Policy*> policies = {&disco_policy(),  &link_aware_policy(), &g10_late_policy(),
                                                      &g10_policy(),    &gemini_policy(),     &lru_policy(),
                                                      &reprise_policy()};
  return policies;
}

const std::vector<const Policy*>& baseline_policies() {
  static const std::vector<const Policy*> policies = {&fluid_policy(), &deepum_policy(), &flashneuron_policy(),
                                                      &uvm_policy()};
  return policies;
}

const Policy* find_policy(std::string_view name) {
  for (const auto* list : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *list) {
      if (policy->name() == name) return policy;
    }
  }
  return nullptr;
}

Status check_policy(std::string_view name) {
  if (name == "auto" || find_policy(name) != nullptr) return {};
  std::string known = "auto";
  for (const auto* list : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *list) known += ", " + std::string(policy->name());
  }
  return {StatusCode::invalid_argument, "no policy is called '" + std::string(name) + "'; choose one of " + known};
}

}  // namespace reprise::analyzer
