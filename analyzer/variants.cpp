#include "analyzer/variants.h"

#include <utility>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/relaunch/choose.h"
#include "analyzer/relaunch/rewrite.h"
#include "analyzer/reorder/early_updates.h"
#include "analyzer/workload.h"

namespace reprise::analyzer {

Variants::Variants(const Workload& workload, uint64_t budget, const PlanOptions& options)
    : workload_(workload), budget_(budget), options_(options) {
  const bool best = options.policy == "auto" || options.policy == "reprise";
  if (!best || workload.graph.devices > 1) return;
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
  Workload variant = workload_;
  variant.graph = std::move(graph);
  const uint64_t held = workload_.reserved_bytes - reserved_bytes(workload_.graph, workload_.slab_bytes, 0);
  complete_workload(variant, held, options_);
  if (budget_ >= variant.minimum_bytes) made_.push_back(std::move(variant));
}

}  // namespace reprise::analyzer
