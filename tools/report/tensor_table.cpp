#include "tools/report/tensor_table.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/plan/vertex_kinds.h"
#include "tools/report/view/frames.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

constexpr size_t kMostTensorRows = 50000;

std::unordered_map<uint64_t, uint32_t> allocation_sites(const trace::Trace& trace) {
  std::unordered_map<uint64_t, uint32_t> sites;
  for (const trace::Event& event : trace.events) {
    const auto* const allocate = std::get_if<trace::Allocate>(&event);
    if (allocate != nullptr) sites[allocate->record.allocation] = allocate->record.call_site;
  }
  return sites;
}

}  // namespace

size_t Stacks::number_of(const std::string& stack) {
  if (stack.empty()) return 0;
  const auto [at, added] = numbers_.emplace(stack, list_.size() + 1);
  if (added) list_.push_back(stack);
  return at->second;
}

std::vector<std::string> tensor_sites(const Inputs& inputs) {
  std::vector<std::string> result(inputs.plan == nullptr ? 0 : inputs.plan->tensors.size());
  if (inputs.trace == nullptr) return result;
  const auto sites = allocation_sites(*inputs.trace);
  for (size_t i = 0; i < result.size(); ++i) {
    const auto found = sites.find(inputs.plan->tensors[i].recorded_allocation);
    if (found == sites.end() || found->second == 0 || found->second > inputs.trace->call_sites.size()) continue;
    result[i] = inputs.trace->call_sites[found->second - 1];
  }
  return result;
}

std::vector<TensorCost> tensor_costs(const Inputs& inputs) {
  const plan::Plan& plan = *inputs.plan;
  std::vector<TensorCost> costs(plan.tensors.size());
  for (uint32_t i = 0; i < costs.size(); ++i) costs[i].tensor = i;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (!plan::copies(vertex.kind) || vertex.tensor >= costs.size()) continue;
    if (!vertex.clean) costs[vertex.tensor].moved_bytes += plan.tensors[vertex.tensor].size;
    ++costs[vertex.tensor].transfers;
  }
  for (const plan::Call& call : plan.calls) {
    for (const plan::OpAccess& access : call.accesses) {
      if (access.tensor < costs.size()) ++costs[access.tensor].uses;
    }
  }
  Timeline timeline;
  if (inputs.log != nullptr) timeline = measured_timeline(plan, *inputs.log);
  if (timeline.bars.empty()) timeline = predicted_timeline(plan);
  for (const WaitSum& sum : sum_waits(plan, timeline).by_tensor) costs[sum.tensor].wait_ns = sum.ns;
  std::stable_sort(costs.begin(), costs.end(), [&](const TensorCost& a, const TensorCost& b) {
    if (a.wait_ns != b.wait_ns) return a.wait_ns > b.wait_ns;
    if (a.moved_bytes != b.moved_bytes) return a.moved_bytes > b.moved_bytes;
    return plan.tensors[a.tensor].size > plan.tensors[b.tensor].size;
  });
  return costs;
}

// So that the page names who asked.
Json passing_on_section(const Inputs& inputs) {
  return inputs.trace == nullptr ? Json::array() : Json(passing_on(*inputs.trace));
}

// Rows: [tensor, bytes, kept, uses, transfers, moved, waited, stack].
Json tensor_table_section(const Inputs& inputs) {
  if (inputs.plan == nullptr) return nullptr;
  const plan::Plan& plan = *inputs.plan;
  const std::vector<std::string> sites = tensor_sites(inputs);
  Stacks stacks;
  Json rows = Json::array();
  uint64_t others = 0;
  uint64_t other_bytes = 0;
  for (const TensorCost& cost : tensor_costs(inputs)) {
    const plan::Tensor& tensor = plan.tensors[cost.tensor];
    if (rows.size() == kMostTensorRows) {
      ++others;
      other_bytes += tensor.size;
      continue;
    }
    rows.push_back({cost.tensor, tensor.size, tensor.allocate_call == plan::kNone ? 1 : 0, cost.uses, cost.transfers,
                    cost.moved_bytes, cost.wait_ns, stacks.number_of(sites[cost.tensor])});
  }
  return {{"rows", std::move(rows)},
          {"stacks", stacks.take()},
          {"others", others},
          {"other_bytes", other_bytes},
          {"left_bytes", left_of_planned_copies(inputs)}};
}

}  // namespace reprise::report
