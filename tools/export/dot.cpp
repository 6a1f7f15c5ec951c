#include <fmt/core.h>

#include <set>
#include <unordered_map>

#include "tools/cli/sizes.h"
#include "tools/export/export.h"
#include "tools/report/timeline.h"

namespace reprise::exports {
namespace {

constexpr size_t kMostVertices = 5000;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text.size() > 60 ? text.substr(0, 57) + "..." : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

Status too_large(size_t count) {
  return {
      StatusCode::unsupported,
      fmt::format("a graph of {} vertices, more than {}, cannot be drawn; use --format json", count, kMostVertices)};
}

std::string vertex_line(const plan::Plan& plan, size_t index) {
  using plan::VertexKind;
  const plan::Vertex& vertex = plan.vertices[index];
  const bool has_tensor = vertex.tensor < plan.tensors.size();
  const std::string tensor =
      has_tensor ? fmt::format("tensor {}, {}", vertex.tensor, tools::format_bytes(plan.tensors[vertex.tensor].size))
                 : "";
  switch (vertex.kind) {
    case VertexKind::op:
      if (vertex.call >= plan.calls.size()) break;
      return fmt::format("  v{} [label={}];\n", index,
                         quoted(report::op_name(plan.calls[vertex.call].op, plan.calls[vertex.call].name)));
    case VertexKind::release:
      return fmt::format("  v{} [label={} shape=point];\n", index, quoted("free " + tensor));
    case VertexKind::offload:
      return fmt::format("  v{} [label={} shape=box style=filled fillcolor=\"#f2c27a\"];\n", index,
                         quoted((vertex.clean ? "compare " : "offload ") + tensor));
    case VertexKind::reload:
      return fmt::format("  v{} [label={} shape=box style=filled fillcolor=\"#8fd3bd\"];\n", index,
                         quoted("reload " + tensor));
  }
  return {};
}

const char* edge_style(const plan::Predecessor& edge) {
  if (edge.distance > 0) return " [style=dotted constraint=false]";
  switch (edge.kind) {
    case plan::EdgeKind::memory:
      return " [style=dashed color=\"#c8440c\"]";
    case plan::EdgeKind::program:
      return " [color=gray]";
    case plan::EdgeKind::data:
      break;
  }
  return "";
}

Result<std::string> plan_graph(const plan::Plan& plan) {
  if (plan.vertices.size() > kMostVertices) return too_large(plan.vertices.size());
  std::string dot = "digraph memgraph {\n  rankdir=TB; node [fontsize=10];\n";
  for (size_t i = 0; i < plan.vertices.size(); ++i) dot += vertex_line(plan, i);
  for (size_t i = 0; i < plan.vertices.size(); ++i) {
    for (const plan::Predecessor& before : plan.vertices[i].predecessors) {
      dot += fmt::format("  v{} -> v{}{};\n", before.vertex, i, edge_style(before));
    }
  }
  return dot + "}\n";
}

// Each op after the one that touched the same allocation before it.
Result<std::string> trace_graph(const trace::Trace& trace) {
  size_t count = 0;
  for (const trace::Event& event : trace.events) count += std::holds_alternative<trace::Op>(event) ? 1u : 0u;
  if (count > kMostVertices) return too_large(count);
  std::string dot = "digraph trace {\n  rankdir=TB; node [fontsize=10];\n";
  std::unordered_map<uint64_t, uint64_t> last;
  for (const trace::Event& event : trace.events) {
    const auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr) continue;
    const uint64_t sequence = op->record.header.sequence;
    dot += fmt::format("  s{} [label={}];\n", sequence, quoted(report::name_of(trace, op->record)));
    std::set<uint64_t> before;
    for (const trace::AccessRecord& access : op->accesses) {
      const auto [found, first] = last.emplace(access.allocation, sequence);
      if (!first && found->second != sequence) before.insert(found->second);
      found->second = sequence;
    }
    for (const uint64_t one : before) dot += fmt::format("  s{} -> s{};\n", one, sequence);
  }
  return dot + "}\n";
}

}  // namespace

Result<std::string> to_dot(const Inputs& inputs) {
  if (inputs.plan != nullptr) return plan_graph(*inputs.plan);
  if (inputs.trace != nullptr) return trace_graph(*inputs.trace);
  return Status(StatusCode::invalid_argument, "dot: a run log holds no graph; give a plan or a trace");
}

}  // namespace reprise::exports
