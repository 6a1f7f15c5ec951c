#include <string>

#include "analyzer/policies/policy.h"
#include "preload/trace/nearest.h"

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

std::vector<std::string> known_policies() {
  std::vector<std::string> names = {"auto"};
  for (const auto* list : {&all_policies(), &baseline_policies()}) {
    for (const Policy* policy : *list) names.emplace_back(policy->name());
  }
  return names;
}

bool searches(std::string_view name) { return name == "auto" || name == reprise_policy().name(); }

Status check_policy(std::string_view name) {
  if (name == "auto" || find_policy(name) != nullptr) return {};
  const std::vector<std::string> names = known_policies();
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  return {StatusCode::invalid_argument,
          "no policy is called '" + std::string(name) + "'" + did_you_mean(name, names) + "; choose one of " + known};
}

}  // namespace reprise::analyzer
