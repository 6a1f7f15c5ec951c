#include "analyzer/verify/verify.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analyzer/verify/machine_walk.h"
#include "analyzer/verify/unrolled.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

constexpr size_t kMostVertices = size_t{1} << 30;  // nodes of two iterations have 31 bits

// No op or free waits for a later call that the program makes only when this op is complete.
Status check_progress(const Unrolled& graph) {
  const plan::Plan& plan = graph.plan();
  const auto count = static_cast<uint32_t>(plan.vertices.size());
  std::vector<int64_t> latest(count, -1);  // node -> latest call among its ancestors in this iteration
  std::vector<uint32_t> latest_node(count, kNone);
  for (uint32_t node = 0; node < count; ++node) {
    const uint32_t call = plan.vertices[graph.vertex_of(node)].call;
    graph.for_predecessors(node, [&](uint32_t before) {
      if (latest[before] <= latest[node]) return;
      latest[node] = latest[before];
      latest_node[node] = latest_node[before];
    });
    if (call == kNone) continue;
    if (latest[node] > call && plan.calls[static_cast<size_t>(latest[node])].waited > call) {
      return refusal(
          fmt::format("{} waits for {}, which the program calls only when it has waited for that: both block for ever",
                      graph.describe(node), graph.describe(latest_node[node])));
    }
    if (latest[node] > call) continue;
    latest[node] = call;
    latest_node[node] = node;
  }
  return {};
}

}  // namespace

Status verify(const plan::Plan& plan) {
  if (Status status = plan::check_structure(plan); !status.ok()) return refusal(status.message());
  if (plan.vertices.size() > kMostVertices) return refusal("it has more vertices than can be checked");
  const Unrolled graph(plan);
  if (Status status = check_progress(graph); !status.ok()) return status;
  if (Status status = check_recompute(plan); !status.ok()) return status;
  if (Status status = check_aliases(plan); !status.ok()) return status;
  if (Status status = check_split_tensors(plan); !status.ok()) return status;
  Questions questions(graph);
  if (Status status = walk_chunks(graph, questions); !status.ok()) return status;
  if (Status status = walk_conflicts(graph, questions); !status.ok()) return status;
  if (Status status = walk_slab(graph, questions); !status.ok()) return status;
  const Questions::Failure failure = questions.first_failure();
  return failure.found ? refusal(counterexample(graph, failure)) : Status{};
}

}  // namespace reprise::analyzer
