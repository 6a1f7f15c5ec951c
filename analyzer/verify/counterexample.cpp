// A question without an answer in words: which vertex may do what too early, through which chunk, in which legal order.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/plan/vertex_kinds.h"
#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

constexpr size_t kShown = 6;  // vertices of an order; the rest is counted

const plan::Vertex& vertex(const Unrolled& graph, uint32_t node) {
  return graph.plan().vertices[graph.vertex_of(node)];
}

// "97 (reload of tensor 12)", or "97 (call 5, gelu), which takes it for tensor 12,".
std::string taker(const Unrolled& graph, uint32_t node, uint32_t tensor) {
  const plan::Vertex& entry = vertex(graph, node);
  if (plan::copies_in(entry.kind) && entry.tensor == tensor) return graph.describe(node);
  return fmt::format("{} for tensor {}", graph.describe(node), tensor);
}

std::string hazard(const Unrolled& graph, const Questions::Failure& failure) {
  const Requirement& why = failure.why;
  const std::string from = graph.describe(failure.from);
  const std::string to = graph.describe(failure.to);
  const std::string use = use_of(graph, failure.from, why.tensor);
  switch (why.kind) {
    case Requirement::overwrite:
      return fmt::format("tensor {} may be overwritten by {} before {} {}, through chunk {}", why.tensor,
                         taker(graph, failure.to, why.other), from, use, why.chunk);
    case Requirement::not_freed:
      return fmt::format(
          "tensor {} may be overwritten by {} before {} lets go of it, through chunk {}; no host copy has its bytes",
          why.tensor, taker(graph, failure.to, why.other), from, why.chunk);
    case Requirement::remap:
      return fmt::format("the range of tensor {} may be mapped elsewhere by {} before {} {}", why.tensor, to, from,
                         use);
    case Requirement::early_use:
      return fmt::format("tensor {} may not be in its chunks (from chunk {} on) yet when {} {}: {} comes before",
                         why.tensor, why.chunk, to, use_of(graph, failure.to, why.tensor), from);
    case Requirement::conflict:
      return fmt::format("{} {}, tensor {}, but may run before {} {}", to, use_of(graph, failure.to, why.tensor),
                         why.tensor, from, use);
    case Requirement::host_copy:
      return fmt::format("{} may run before {}, but both use the host copy of tensor {}", to, from, why.tensor);
    case Requirement::slab:
      return fmt::format(
          "small tensor {} may be overwritten by {} for tensor {} before {} {}, through byte {} of the slab",
          why.tensor, to, why.other, from, use,
          std::max(graph.plan().tensors[why.tensor].slab_offset, graph.plan().tensors[why.other].slab_offset));
    case Requirement::barrier:
      return fmt::format("{} may run before {}, but one of them must keep its place in the program", to, from);
  }
  return {};
}

// In the plan's own order `from` stands before `to`. What stands between them and `to` waits for runs first, then `to`.
std::string order(const Unrolled& graph, uint32_t from, uint32_t to) {
  std::vector<uint8_t> needed(to - from + 1, 0);
  std::vector<uint32_t> between;
  needed[to - from] = 1;
  for (uint32_t node = to; node > from; --node) {
    if (needed[node - from] == 0) continue;
    if (node != to) between.push_back(node);
    graph.for_predecessors(node, [&](uint32_t before) {
      if (before > from) needed[before - from] = 1;
    });
  }
  std::string text;
  if (between.size() > kShown) text = fmt::format("{} others that do not wait for it, ", between.size() - kShown);
  for (size_t i = std::min(between.size(), kShown); i-- > 0;) text += graph.number(between[i]) + ", ";
  return fmt::format("{}{} and only then {}", text, graph.number(to), graph.number(from));
}

}  // namespace

std::string use_of(const Unrolled& graph, uint32_t node, uint32_t tensor) {
  const plan::Vertex& entry = vertex(graph, node);
  if (plan::frees(entry.kind)) return "frees it";
  if (plan::copies_out(entry.kind)) return "copies it out";
  if (plan::copies_in(entry.kind)) return entry.tensor == tensor ? "brings it in" : "takes its place";
  uint32_t mode = 0;
  const plan::Call& call = graph.plan().calls[entry.call];
  for (const plan::OpAccess& access : call.accesses) {
    if (access.tensor == tensor) mode |= access.mode;
  }
  if (mode == 0) return uses_everything(call) ? "may use it" : "takes memory for it";
  if (mode == trace::kAccessRead) return "reads it";
  return mode == trace::kAccessWrite ? "writes it" : "reads and writes it";
}

Questions::Failure Questions::first_failure() {
  const Reach::Question* question = reach_.first_without(open_);
  if (question == nullptr) return {};
  return {true, question->from, question->to, notes_[question->note]};
}

Status refusal(const std::string& what) { return {StatusCode::internal, "the plan is wrong: " + what}; }

std::string counterexample(const Unrolled& graph, const Questions::Failure& failure) {
  if (failure.from >= failure.to) return hazard(graph, failure) + ", as the plan's own order has it";
  return fmt::format("{}; a legal order that breaks it runs {}", hazard(graph, failure),
                     order(graph, failure.from, failure.to));
}

}  // namespace reprise::analyzer
