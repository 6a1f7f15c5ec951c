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

constexpr uint64_t kPartsOfCapacity = 32;       // tensors with more than this share of it are split (0014)
constexpr uint32_t kMostOpsOfVariant = 20'000;  // of graphs that are worth the time
constexpr uint64_t kSmall = 4096;  // accesses that splitting may add to any graph; to large ones half of theirs

}  // namespace

Variants::Variants(const Workload& workload, uint64_t budget, const PlanOptions& options)
    : workload_(workload), budget_(budget), options_(options) {
  tried_ = (options.policy == "auto" || options.policy == "reprise") && workload.graph.devices == 1;
  if (!tried_) return;
  if (options.reorder) add_reordered(workload.graph);
  // A launch that is repeated was recorded with one shape.
  if (!options.recompute || workload.iteration.sizes_vary) return;
  const Machine* const guarded = options.known.facts ? &workload.machine : nullptr;
  for (const std::vector<uint32_t>& calls :
       choose_recompute(workload.graph, workload.machine, chunks_that_fit(workload, budget), {}, guarded)) {
    add(with_recompute(workload.graph, calls, guarded));
  }
  if (!options.reorder || made_.empty() || made_.front().graph.reordered_from.empty()) return;
  // Which ops are worth recomputing is another matter when updates are reordered.
  const auto reorder = [](const TaskGraph& graph) { return with_reordered_updates(graph); };
  for (const std::vector<uint32_t>& others :
       choose_recompute(workload.graph, workload.machine, chunks_that_fit(workload, budget), reorder, guarded)) {
    add_reordered(with_recompute(workload.graph, others, guarded));
  }
}

void Variants::add_reordered(const TaskGraph& graph) {
  TaskGraph reordered = with_reordered_updates(graph);
  if (!reordered.reordered_from.empty()) add(std::move(reordered));
}

void Variants::add(TaskGraph graph) {
  if (std::optional<Workload> variant = made_of(std::move(graph))) made_.push_back(std::move(*variant));
}

std::optional<Workload> Variants::split(const Workload& variant) const {
  if (!tried_ || !options_.split_tensors || variant.graph.op_count > kMostOpsOfVariant) return std::nullopt;
  uint64_t accesses = 0;
  for (const GraphCall& entry : variant.graph.calls) accesses += entry.operands.size();
  const uint64_t most_chunks = chunks_that_fit(variant, budget_) / kPartsOfCapacity;
  TaskGraph graph = with_split_tensors(variant.graph, most_chunks, std::max(accesses / 2, kSmall));
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
