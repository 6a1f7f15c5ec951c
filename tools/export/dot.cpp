#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analyzer/plan/names.h"
#include "analyzer/plan/vertex_kinds.h"
#include "tools/cli/sizes.h"
#include "tools/export/export.h"
#include "tools/report/view/timeline.h"

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

// What a window leaves of `count`; refused when that is nothing, or more than can be drawn.
Status cut(size_t count, const Window& window, size_t& end) {
  if (window.first >= count && window.first > 0) {
    return {StatusCode::invalid_argument,
            fmt::format("--window {}: there are only {} vertices, counted from 0; begin earlier", window.first, count)};
  }
  const size_t left = count - window.first;
  end = window.first + std::min(left, window.count);
  if (end - window.first <= kMostVertices) return {};
  return {StatusCode::unsupported,
          fmt::format("a graph of {} vertices, more than {}, cannot be drawn; draw a part, as with --window {}:500, or "
                      "use --format json for all of it",
                      end - window.first, kMostVertices, window.first)};
}

std::string vertex_line(const plan::Plan& plan, size_t index) {
  const plan::Vertex& vertex = plan.vertices[index];
  const bool has_tensor = vertex.tensor < plan.tensors.size();
  const std::string tensor =
      has_tensor ? fmt::format("tensor {}, {}", vertex.tensor, tools::format_bytes(plan.tensors[vertex.tensor].size))
                 : "";
  if (plan::frees(vertex.kind)) {
    return fmt::format("  v{} [label={} shape=point];\n", index, quoted("free " + tensor));
  }
  if (plan::copies(vertex.kind)) {
    return fmt::format("  v{} [label={} shape=box style=filled fillcolor=\"{}\"];\n", index,
                       quoted(fmt::format("{} {}", vertex.clean ? "compare" : plan::name_of(vertex.kind), tensor)),
                       plan::copies_out(vertex.kind) ? "#f2c27a" : "#8fd3bd");
  }
  if (vertex.call >= plan.calls.size()) return {};
  return fmt::format("  v{} [label={}];\n", index,
                     quoted(report::op_name(plan.calls[vertex.call].op, plan.calls[vertex.call].name)));
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

Result<std::string> plan_graph(const plan::Plan& plan, const Window& window) {
  size_t end = 0;
  if (Status status = cut(plan.vertices.size(), window, end); !status.ok()) return status;
  std::string dot = "digraph memgraph {\n  rankdir=TB; node [fontsize=10];\n";
  for (size_t i = window.first; i < end; ++i) dot += vertex_line(plan, i);
  for (size_t i = window.first; i < end; ++i) {
    for (const plan::Predecessor& before : plan.vertices[i].predecessors) {
      if (before.vertex < window.first || before.vertex >= end) continue;
      dot += fmt::format("  v{} -> v{}{};\n", before.vertex, i, edge_style(before));
    }
  }
  return dot + "}\n";
}

// Each op after the one that touched the same allocation before it.
Result<std::string> trace_graph(const trace::Trace& trace, const Window& window) {
  size_t count = 0;
  for (const trace::Event& event : trace.events) count += std::holds_alternative<trace::Op>(event) ? 1u : 0u;
  size_t end = 0;
  if (Status status = cut(count, window, end); !status.ok()) return status;
  std::string dot = "digraph trace {\n  rankdir=TB; node [fontsize=10];\n";
  std::unordered_map<uint64_t, uint64_t> last;
  size_t index = 0;
  for (const trace::Event& event : trace.events) {
    const auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr) continue;
    if (const size_t at = index++; at < window.first || at >= end) continue;
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

Result<std::string> to_dot(const Inputs& inputs, const Window& window) {
  if (inputs.plan != nullptr) return plan_graph(*inputs.plan, window);
  if (inputs.trace != nullptr) return trace_graph(*inputs.trace, window);
  return Status(StatusCode::invalid_argument, "dot: a run log holds no graph; give a plan or a trace");
}

}  // namespace reprise::exports
