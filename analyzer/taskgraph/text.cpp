// The TaskGraph for people and for `dot`.
#include <fmt/format.h>

#include <iterator>

#include "analyzer/plan/names.h"
#include "analyzer/taskgraph/graph.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

std::string quoted(const std::string& name) {
  std::string result;
  for (const char c : trace::short_name(name)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string to_text(const TaskGraph& graph) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "graph ops={} tensors={} peak={} compute_ns={}\n", graph.op_count, graph.tensors.size(),
                 graph.peak_bytes, graph.compute_ns);
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    const plan::Tensor& tensor = graph.tensors[t];
    fmt::format_to(out, "tensor {} size={} chunks={}", t, tensor.size, tensor.chunk_count);
    if (tensor.part_of != kNone) fmt::format_to(out, " part_of={}+{}", tensor.part_of, tensor.part_offset);
    if (is_persistent(tensor)) {
      fmt::format_to(out, " persistent\n");
    } else {
      fmt::format_to(out, " transient {}..{}\n", tensor.allocate_call, tensor.free_call);
    }
  }
  for (uint32_t c = 0; c < graph.calls.size(); ++c) {
    const GraphCall& entry = graph.calls[c];
    fmt::format_to(out, "call {} {}", c, plan::name_of(entry.call.kind));
    if (entry.call.tensor != kNone) fmt::format_to(out, " tensor={}", entry.call.tensor);
    if (entry.call.kind == plan::CallKind::op)
      fmt::format_to(out, " {} ns={}", entry.call.name, entry.call.duration_ns);
    for (const plan::OpAccess& access : entry.call.accesses) {
      const bool unchanged = writes(access) && !changes(access);
      fmt::format_to(out, " {}{}{}[{}+{}:{}]", reads(access) ? "r" : "", writes(access) ? "w" : "",
                     unchanged ? "u" : "", access.tensor, access.offset, access.size);
    }
    fmt::format_to(out, "{}\n", entry.barrier ? " barrier" : "");
  }
  for (const DataEdge& edge : graph.edges) {
    fmt::format_to(out, "edge {} -> {} distance={} {}\n", edge.from, edge.to, edge.distance,
                   edge.kind == plan::EdgeKind::data ? "data" : "program");
  }
  return text;
}

std::string to_dot(const TaskGraph& graph) {
  std::string text = "digraph taskgraph {\n  node [shape=box];\n";
  const auto out = std::back_inserter(text);
  for (uint32_t c = 0; c < graph.calls.size(); ++c) {
    if (graph.calls[c].call.kind != plan::CallKind::op) continue;
    fmt::format_to(out, "  c{} [label=\"{} {}\"];\n", c, c, quoted(graph.calls[c].call.name));
  }
  for (const DataEdge& edge : graph.edges) {
    const char* style = edge.distance == 1 ? " [label=\"next\", style=dashed, constraint=false]" : "";
    fmt::format_to(out, "  c{} -> c{}{};\n", edge.from, edge.to, style);
  }
  text += "}\n";
  return text;
}

}  // namespace reprise::analyzer
