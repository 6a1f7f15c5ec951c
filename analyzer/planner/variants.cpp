#include "analyzer/planner/variants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/planner/workload.h"
#include "analyzer/rewrite/choose_recompute.h"
#include "analyzer/rewrite/recompute.h"
#include "analyzer/rewrite/reorder.h"
#include "analyzer/rewrite/split_tensors.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kPartsOfCapacity = 32;  // tensors with more than this share of it move in parts (0014)
constexpr uint32_t kMostOps = 20'000;      // of graphs that are worth the time
constexpr uint64_t kSmall = 4096;          // accesses that may be added to any graph; to others half of what they have

}  // namespace

Variants::Variants(const Workload& workload, uint64_t budget, const PlanOptions& options)
    : workload_(workload), budget_(budget), options_(options) {
  tried_ = (options.policy == "auto" || options.policy == "reprise") && workload.graph.devices == 1;
  if (!tried_) return;
  if (options.overtake) add_early(workload.graph);
  if (!options.recompute) return;
  const std::vector<uint32_t> calls =
      choose_relaunches(workload.graph, workload.machine, chunks_that_fit(workload, budget));
  if (!calls.empty()) add(with_relaunches(workload.graph, calls));
  if (!options.overtake || made_.empty() || made_.front().graph.recorded.empty()) return;
  // What is worth launching again is another matter when updates are early.
  const auto early = [](const TaskGraph& graph) { return with_early_updates(graph); };
  const std::vector<uint32_t> others =
      choose_relaunches(workload.graph, workload.machine, chunks_that_fit(workload, budget), early);
  if (!others.empty()) add_early(with_relaunches(workload.graph, others));
}

void Variants::add_early(const TaskGraph& graph) {
  TaskGraph early = with_early_updates(graph);
  if (!early.recorded.empty()) add(std::move(early));
}

void Variants::add(TaskGraph graph) {
  if (std::optional<Workload> variant = made_of(std::move(graph))) made_.push_back(std::move(*variant));
}

std::optional<Workload> Variants::in_parts(const Workload& variant) const {
  if (!tried_ || !options_.parts || variant.graph.op_count > kMostOps) return std::nullopt;
  uint64_t accesses = 0;
  for (const GraphCall& entry : variant.graph.calls) accesses += entry.operands.size();
  const uint64_t most_chunks = chunks_that_fit(variant, budget_) / kPartsOfCapacity;
  TaskGraph graph = with_parts(variant.graph, most_chunks, std::max(accesses / 2, kSmall));
  if (graph.tensors.size() == variant.graph.tensors.size()) return std::nullopt;
  return made_of(std::move(graph));
}

std::optional<Workload> Variants::made_of(TaskGraph graph) const {
  Workload variant = workload_;
  variant.graph = std::move(graph);
  const uint64_t held = workload_.reserved_bytes - reserved_bytes(workload_.graph, workload_.slab_bytes, 0);
  complete_workload(variant, held, options_);
  if (budget_ < variant.minimum_bytes) return std::nullopt;
  return variant;
}

}  // namespace reprise::analyzer
