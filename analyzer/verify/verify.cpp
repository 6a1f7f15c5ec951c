#include "analyzer/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/verify/machine_walk.h"
#include "analyzer/verify/unrolled.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

Status wrong(const std::string& message) { return {StatusCode::internal, "the plan is wrong: " + message}; }

// No op or free waits for a later call of the program: the program may not make that call before this op is complete.
Status check_progress(const plan::Plan& plan, const Unrolled& graph) {
  std::vector<int64_t> latest(plan.vertices.size(), -1);  // vertex -> latest call among its ancestors
  std::vector<uint32_t> latest_vertex(plan.vertices.size(), kNone);
  for (const uint32_t index : plan.order) {
    const plan::Vertex& vertex = plan.vertices[index];
    for (const plan::Predecessor& predecessor : vertex.predecessors) {
      if (predecessor.distance != 0 || latest[predecessor.vertex] <= latest[index]) continue;
      latest[index] = latest[predecessor.vertex];
      latest_vertex[index] = latest_vertex[predecessor.vertex];
    }
    if (vertex.call == kNone) continue;
    if (latest[index] > vertex.call) {
      return wrong(fmt::format("{} waits for {}, which the program may call only later", graph.describe(index),
                               graph.describe(latest_vertex[index])));
    }
    latest[index] = vertex.call;
    latest_vertex[index] = index;
  }
  return {};
}

std::string explain(const Unrolled& graph, const Unrolled::Question& question, const Requirement& why) {
  const std::string from = graph.describe(question.from);
  const std::string to = graph.describe(question.to);
  switch (why.kind) {
    case Requirement::overwrite:
      return fmt::format(
          "tensor {} may be overwritten by {} (for tensor {}) before {} is done with it, through chunk {}", why.tensor,
          to, why.other, from, why.chunk);
    case Requirement::not_freed:
      return fmt::format(
          "tensor {} may be overwritten by {} (for tensor {}) before the program frees it ({}), through "
          "chunk {}",
          why.tensor, to, why.other, from, why.chunk);
    case Requirement::remap:
      return fmt::format("the range of tensor {} may be mapped elsewhere by {} while {} uses it", why.tensor, to, from);
    case Requirement::early_use:
      return fmt::format("{} may use tensor {} before {} has brought it in", to, why.tensor, from);
    case Requirement::conflict:
      return fmt::format("{} may run before {}, but both use tensor {}", to, from, why.tensor);
    case Requirement::host_copy:
      return fmt::format("{} may run before {}, but both use the host copy of tensor {}", to, from, why.tensor);
    case Requirement::slab:
      return fmt::format("{} may run before {}, but small tensors {} and {} share bytes", to, from, why.tensor,
                         why.other);
    case Requirement::barrier:
      return fmt::format("{} may run before {}, but one of them must keep its place in the program", to, from);
  }
  return {};
}

}  // namespace

Status verify(const plan::Plan& plan) {
  if (Status status = plan::check_structure(plan); !status.ok()) return wrong(status.message());
  const Unrolled graph(plan);
  if (graph.order().empty() && !plan.vertices.empty()) return wrong("its edges form a cycle");
  if (Status status = check_progress(plan, graph); !status.ok()) return status;
  Questions questions;
  if (Status status = walk_chunks(plan, graph, questions); !status.ok()) return status;
  if (Status status = walk_conflicts(plan, graph, questions); !status.ok()) return status;
  if (Status status = walk_slab(plan, graph, questions); !status.ok()) return status;
  if (const Unrolled::Question* question = graph.unanswered(questions.list)) {
    return wrong(explain(graph, *question, questions.notes[question->note]));
  }
  return {};
}

}  // namespace reprise::analyzer
