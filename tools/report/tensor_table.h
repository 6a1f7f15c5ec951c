// What each tensor of a plan moves, and what computing waits for it. Called by the table of tensors, by the
// advice and by the comparison of plans.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/report/report.h"

namespace reprise::report {

struct TensorCost {
  uint32_t tensor = 0;
  uint64_t moved_bytes = 0;  // out and back, of an iteration
  uint64_t wait_ns = 0;      // of computing, that its copies ended
  uint32_t transfers = 0;
  uint32_t uses = 0;
};

// One a tensor, those that cost most first: by waiting, then by bytes, then by size. Waits are those of the measured
// iteration where there is one, else predicted.
std::vector<TensorCost> tensor_costs(const Inputs& inputs);
// The call stack at which each tensor of the plan was allocated, innermost frame first; empty: not known.
std::vector<std::string> tensor_sites(const Inputs& inputs);

// Of the rows of a table: stacks stand once, and rows name them by number; 0: not known.
class Stacks {
 public:
  size_t number_of(const std::string& stack);
  Json take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  Json list_ = Json::array();
};

}  // namespace reprise::report
