#include <fmt/core.h>

#include "analyzer/plan/names.h"
#include "analyzer/plan/vertex_kinds.h"
#include "preload/trace/names.h"
#include "tools/export/export.h"
#include "tools/report/log/every_iteration.h"
#include "tools/report/tensor_table.h"
#include "tools/report/view/timeline.h"

namespace reprise::exports {
namespace {

// RFC 4180: a field with a comma, a quote or a line end stands in quotes, and quotes in it are doubled.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// A row is a line: frames, innermost first, with " < " between them.
std::string in_one_line(const std::string& frames) {
  std::string line;
  for (const char c : frames) line += c == '\n' ? std::string(" < ") : std::string(1, c);
  return line;
}

std::string run_table(const report::RunLog& log) {
  std::string csv = "iteration,mode,wall_ns,stall_ns,offload_bytes,reload_bytes,vmm_calls\n";
  for (const report::ListedIteration& row : report::every_iteration(log)) {
    csv += fmt::format("{},{},", row.index ? std::to_string(*row.index) : "", row.mode);
    const report::RunIteration* const it = row.timed;
    csv += it == nullptr ? "," : fmt::format("{},", it->wall_ns);
    csv += it != nullptr && it->counted
               ? fmt::format("{},{},{},{}\n", it->stall_ns, it->offload_bytes, it->reload_bytes, it->vmm_calls)
               : ",,,\n";
  }
  return csv;
}

std::string vertex_label(const plan::Plan& plan, const plan::Vertex& vertex) {
  if (plan::runs_op(vertex.kind) && vertex.call < plan.calls.size()) {
    return report::op_name(plan.calls[vertex.call].op, plan.calls[vertex.call].name);
  }
  return std::string(plan::name_of(vertex.kind));
}

std::string plan_table(const plan::Plan& plan) {
  std::string csv = "vertex,kind,name,tensor,bytes,predicted_start_ns,predicted_end_ns,predecessors\n";
  for (size_t i = 0; i < plan.vertices.size(); ++i) {
    const plan::Vertex& vertex = plan.vertices[i];
    std::string before;
    for (const plan::Predecessor& one : vertex.predecessors) {
      before += fmt::format("{}{}{}", before.empty() ? "" : " ", one.vertex, one.distance > 0 ? "'" : "");
    }
    const bool has_tensor = vertex.tensor < plan.tensors.size();
    csv += fmt::format("{},{},{},{},{},{},{},{}\n", i, plan::name_of(vertex.kind), field(vertex_label(plan, vertex)),
                       has_tensor ? fmt::format("{}", vertex.tensor) : "",
                       has_tensor ? fmt::format("{}", plan.tensors[vertex.tensor].size) : "", vertex.predicted_start_ns,
                       vertex.predicted_end_ns, before);
  }
  return csv;
}

std::string trace_table(const trace::Trace& trace) {
  std::string csv = "sequence,kind,name,stream,thread,time_ns,start_ns,end_ns,bytes,allocations\n";
  for (const trace::Event& event : trace.events) {
    const auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr) continue;
    const trace::OpRecord& record = op->record;
    std::string allocations;
    for (const trace::AccessRecord& access : op->accesses) {
      allocations += fmt::format("{}{}", allocations.empty() ? "" : " ", access.allocation);
    }
    const auto activity = trace.activities.find(record.header.sequence);
    const bool timed = activity != trace.activities.end();
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", record.header.sequence, trace::name_of(record.op),
                       field(report::name_of(trace, record)), record.stream, record.thread, record.time_ns,
                       timed ? fmt::format("{}", activity->second.start_ns) : "",
                       timed ? fmt::format("{}", activity->second.end_ns) : "", record.size, allocations);
  }
  return csv;
}

}  // namespace

Result<std::string> to_tensor_table(const Inputs& inputs) {
  if (inputs.plan == nullptr) {
    return Status(StatusCode::invalid_argument, "tensors: this is of a plan; give one, with its trace for call stacks");
  }
  const std::vector<std::string> sites = report::tensor_sites(inputs);
  std::string csv = "tensor,bytes,kept,uses,transfers,moved_bytes,waited_ns,allocated_in\n";
  for (const report::TensorCost& cost : report::tensor_costs(inputs)) {
    const plan::Tensor& tensor = inputs.plan->tensors[cost.tensor];
    csv +=
        fmt::format("{},{},{},{},{},{},{},{}\n", cost.tensor, tensor.size, tensor.allocate_call == plan::kNone ? 1 : 0,
                    cost.uses, cost.transfers, cost.moved_bytes, cost.wait_ns, field(in_one_line(sites[cost.tensor])));
  }
  return csv;
}

Result<std::string> to_csv(const Inputs& inputs) {
  if (inputs.log != nullptr) return run_table(*inputs.log);
  if (inputs.plan != nullptr) return plan_table(*inputs.plan);
  return trace_table(*inputs.trace);
}

}  // namespace reprise::exports
