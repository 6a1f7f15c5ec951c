#include <fmt/core.h>

#include <sstream>

#include "analyzer/plan/names.h"
#include "preload/base/run_log_keys.h"
#include "preload/trace/names.h"
#include "tools/cli/files.h"
#include "tools/export/export.h"
#include "tools/report/log/every_iteration.h"
#include "tools/report/view/timeline.h"

namespace reprise::exports {
namespace {

// Numbers of 64 bits that no double holds: hashes, addresses, handles. As everywhere else in Reprise's files: 16
// hexadecimal digits.
std::string digits(uint64_t number) { return fmt::format("{:016x}", number); }

Json accesses_json(const std::vector<trace::AccessRecord>& accesses) {
  Json list = Json::array();
  for (const trace::AccessRecord& one : accesses) {
    list.push_back(
        {{"allocation", one.allocation},
         {"offset", one.offset},
         {"size", one.size},
         {"mode", one.mode},
         {"parameter_offset", one.parameter_offset == trace::kNoParameter ? Json() : Json(one.parameter_offset)}});
  }
  return list;
}

// Bytes as hexadecimal digits.
std::string bytes_text(const std::vector<uint8_t>& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

Json op_json(const trace::Trace& trace, const trace::Op& op) {
  const trace::OpRecord& record = op.record;
  Json json = {{"event", "op"},
               {"sequence", record.header.sequence},
               {"kind", trace::name_of(record.op)},
               {"name", report::name_of(trace, record)},
               {"flags", record.header.flags},
               {"time_ns", record.time_ns},
               {"signature", digits(record.signature)},
               {"size", record.size},
               {"device", record.device},
               {"thread", record.thread},
               {"stream", record.stream},
               {"function", record.function},
               {"call_site", record.call_site},
               {"grid", record.grid},
               {"block", record.block},
               {"shared_bytes", record.shared_bytes}};
  const auto activity = trace.activities.find(record.header.sequence);
  if (activity != trace.activities.end()) {
    json["start_ns"] = activity->second.start_ns;
    json["end_ns"] = activity->second.end_ns;
  }
  json["accesses"] = accesses_json(op.accesses);
  json["parameters"] = bytes_text(op.parameters);
  return json;
}

Json event_json(const trace::Trace& trace, const trace::Event& event) {
  if (const auto* op = std::get_if<trace::Op>(&event)) return op_json(trace, *op);
  if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
    const trace::AllocateRecord& record = allocate->record;
    return {{"event", "allocate"},
            {"sequence", record.header.sequence},
            {"allocation", record.allocation},
            {"size", record.size},
            {"origin", trace::name_of(record.origin)},
            {"time_ns", record.time_ns},
            {"stream", record.stream},
            {"device", record.device},
            {"flags", record.header.flags},
            {"call_site", record.call_site},
            {"address", digits(record.address)}};
  }
  if (const auto* release = std::get_if<trace::Free>(&event)) {
    const trace::FreeRecord& record = release->record;
    return {{"event", "free"},
            {"sequence", record.header.sequence},
            {"allocation", record.allocation},
            {"origin", trace::name_of(record.origin)},
            {"flags", record.header.flags},
            {"time_ns", record.time_ns},
            {"stream", record.stream}};
  }
  if (const auto* order = std::get_if<trace::Order>(&event)) {
    const trace::OrderRecord& record = order->record;
    return {{"event", "order"},
            {"sequence", record.header.sequence},
            {"kind", trace::name_of(record.order)},
            {"object", digits(record.event)},
            {"stream", record.stream},
            {"time_ns", record.time_ns}};
  }
  const auto& mark = std::get<trace::Mark>(event);
  return {{"event", "mark"},
          {"sequence", mark.record.header.sequence},
          {"text", mark.text},
          {"depth", mark.record.depth},
          {"time_ns", mark.record.time_ns}};
}

template <typename T, typename F>
Json list_json(const std::vector<T>& items, F to) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to(item));
  return list;
}

Json function_json(const trace::TracedFunction& function) {
  Json json = {{"id", function.id},
               {"name", function.name},
               {"identity", digits(function.identity)},
               {"parameters_known", function.parameters_known}};
  json["parameters"] = list_json(function.parameters, [](const trace::ParameterLayout& one) {
    return Json{{"offset", one.offset}, {"bytes", one.bytes}};
  });
  return json;
}

Json stream_json(const trace::StreamRecord& stream) {
  return {{"stream", stream.stream},
          {"sequence", stream.header.sequence},
          {"created", stream.created != 0},
          {"non_blocking", stream.non_blocking != 0},
          {"priority", stream.priority}};
}

Json gap_json(const trace::GapRecord& gap) {
  return {{"after", gap.after_sequence},
          {"before", gap.header.sequence},
          {"records", gap.records},
          {"flags", gap.header.flags}};
}

Json trace_json(const trace::Trace& trace) {
  Json json;
  json["info"] = Json::object();
  for (const auto& [key, value] : std::map<std::string, std::string>(trace.info.begin(), trace.info.end())) {
    json["info"][key] = value;
  }
  json["ended"] = trace.ended;
  json["dropped"] = trace.dropped;
  json["tail"] = trace.tail.message();
  json["unknown"] = trace.unknown;
  json["call_sites"] = trace.call_sites;
  json["functions"] = list_json(trace.functions, function_json);
  json["streams"] = list_json(trace.streams, stream_json);
  json["gaps"] = list_json(trace.gaps, gap_json);
  json["pauses"] = list_json(trace.pauses, gap_json);
  json["events"] = Json::array();
  for (const trace::Event& event : trace.events) json["events"].push_back(event_json(trace, event));
  return json;
}

Json index_json(uint32_t index) { return index == plan::kNone ? Json() : Json(index); }

Json tensor_json(const plan::Tensor& tensor) {
  return {{"size", tensor.size},
          {"recorded_allocation", tensor.recorded_allocation},
          {"chunk_count", tensor.chunk_count},
          {"allocate_call", index_json(tensor.allocate_call)},
          {"free_call", index_json(tensor.free_call)},
          {"home", index_json(tensor.home)},
          {"slab_offset", tensor.slab_offset},
          {"resident_at_start", tensor.resident_at_start},
          {"clean_at_start", tensor.clean_at_start},
          {"device", tensor.device},
          {"recompute_of", index_json(tensor.recompute_of)},
          {"part_of", index_json(tensor.part_of)},
          {"part_offset", tensor.part_offset}};
}

Json call_json(const plan::Call& call) {
  Json json = {{"kind", plan::name_of(call.kind)},  {"signature", digits(call.signature)}, {"stream", call.stream},
               {"tensor", index_json(call.tensor)}, {"vertex", index_json(call.vertex)},   {"name", call.name},
               {"duration_ns", call.duration_ns}};
  if (call.kind == plan::CallKind::op) {
    json["op"] = trace::name_of(call.op);
    json["pure"] = call.pure;
  } else {
    json["origin"] = trace::name_of(call.origin);
  }
  json["flags"] = call.flags;
  json["device"] = call.device;
  json["waited"] = call.waited;
  if (call.inserted) json["inserted"] = true;
  if (call.recompute_of != plan::kNone) json["recompute_of"] = call.recompute_of;
  json["accesses"] = Json::array();
  for (const plan::OpAccess& one : call.accesses) {
    json["accesses"].push_back(
        {{"tensor", one.tensor},
         {"mode", one.mode},
         {"offset", one.offset},
         {"size", one.size},
         {"parameter_offset", one.parameter_offset == trace::kNoParameter ? Json() : Json(one.parameter_offset)}});
  }
  return json;
}

Json vertex_json(const plan::Vertex& vertex) {
  Json json = {{"kind", plan::name_of(vertex.kind)},
               {"call", index_json(vertex.call)},
               {"tensor", index_json(vertex.tensor)},
               {"predicted_start_ns", vertex.predicted_start_ns},
               {"predicted_end_ns", vertex.predicted_end_ns}};
  if (vertex.clean) json["clean"] = true;
  json["predecessors"] = Json::array();
  for (const plan::Predecessor& one : vertex.predecessors) {
    json["predecessors"].push_back(
        {{"vertex", one.vertex}, {"kind", plan::name_of(one.kind)}, {"distance", one.distance}});
  }
  json["acquires"] = Json::array();
  for (const plan::Acquire& one : vertex.acquires) {
    json["acquires"].push_back({{"tensor", one.tensor}, {"placement", index_json(one.placement)}});
  }
  return json;
}

Json link_json(const plan::PlannedLink& link) {
  return {{"machine", link.machine},
          {"assumed", link.assumed},
          {"h2d_bytes_per_s", link.h2d_bytes_per_s},
          {"d2h_bytes_per_s", link.d2h_bytes_per_s},
          {"latency_ns", link.latency_ns},
          {"remap_ns_per_chunk", link.remap_ns_per_chunk}};
}

Json plan_json(const plan::Plan& plan) {
  Json json = {{"program", plan.program},
               {"program_hash", digits(plan.program_hash)},
               {"iteration_hash", digits(plan.iteration_hash)},
               {"policy", plan.policy},
               {"safety", plan::name_of(plan.safety)},
               {"link", link_json(plan.link)},
               {"chunk_bytes", plan.chunk_bytes},
               {"budget_bytes", plan.budget_bytes},
               {"reserved_bytes", plan.reserved_bytes},
               {"chunk_count", plan.chunk_count},
               {"slab_bytes", plan.slab_bytes},
               {"peak_bytes", plan.peak_bytes},
               {"minimum_bytes", plan.minimum_bytes},
               {"compute_ns", plan.compute_ns},
               {"predicted_ns", plan.predicted_ns},
               {"offload_bytes", plan.offload_bytes},
               {"reload_bytes", plan.reload_bytes},
               {"remap_count", plan.remap_count}};
  json["device_chunks"] = plan.device_chunks;
  json["tensors"] = list_json(plan.tensors, tensor_json);
  json["placements"] = list_json(plan.placements, [](const plan::Placement& one) { return Json(one.chunks); });
  json["calls"] = list_json(plan.calls, call_json);
  json["vertices"] = list_json(plan.vertices, vertex_json);
  json["order"] = plan.order;
  return json;
}

Json divergence_json(const report::RunDivergence& one) {
  namespace key = run_log::divergence;
  return {{"kind", one.loop_end ? run_log::loop_end::line.name : key::line.name},
          {key::iteration.name, one.iteration},
          {key::call.name, one.call},
          {key::expected.name, one.expected},
          {key::got.name, one.got},
          {key::difference.name, one.difference},
          {key::reason.name, one.reason},
          {run_log::every::at_ns.name, one.at_ns}};
}

Json reason_json(const report::RunReason& one) {
  namespace key = run_log::on_demand;
  Json json = {{key::cause.name, one.cause}, {key::reason.name, one.reason}};
  if (one.plan) json[key::plan.name] = *one.plan;
  return json;
}

Json unmanaged_json(const report::RunUnmanaged& one) {
  namespace key = run_log::unmanaged;
  return {{key::what.name, one.what}, {key::count.name, one.count}, {key::bytes.name, one.bytes}};
}

Json activity_json(const report::RunActivity& one) {
  namespace key = run_log::activity;
  return {{key::iteration.name, one.iteration},
          {key::vertex.name, one.vertex},
          {key::engine.name, one.engine},
          {key::start_ns.name, one.start_ns},
          {key::end_ns.name, one.end_ns}};
}

Json iteration_json(const report::ListedIteration& row) {
  namespace key = run_log::iteration;
  static const report::RunIteration nothing;
  const report::RunIteration& it = row.timed == nullptr ? nothing : *row.timed;
  const auto known = [](bool is, uint64_t value) { return is ? Json(value) : Json(nullptr); };
  const bool timed = row.timed != nullptr;
  const bool counted = timed && it.counted;
  return {{key::index.name, known(row.index.has_value(), row.index.value_or(0))},
          {key::mode.name, row.mode},
          {key::wall_ns.name, known(timed, it.wall_ns)},
          {key::offload_bytes.name, known(counted, it.offload_bytes)},
          {key::reload_bytes.name, known(counted, it.reload_bytes)},
          {key::spared_bytes.name, known(counted, it.spared_bytes)},
          {key::dropped_bytes.name, known(counted, it.dropped_bytes)},
          {key::repeated_launches.name, known(counted, it.repeated_launches)},
          {key::stall_ns.name, known(counted, it.stall_ns)},
          {key::vmm_calls.name, known(counted, it.vmm_calls)}};
}

// A file that the planner wrote while the program ran goes with the run, unless it is kept.
std::string plan_of(const report::RunLog& log) {
  if (!log.kept_plan.empty()) return log.kept_plan;
  if (log.plan_count == 0 || log.mode == "replay" || tools::file_size(log.plan_path) > 0) return log.plan_path;
  return "made during the run";
}

// Keys of the log keep their names.
Json run_json(const report::RunLog& log) {
  namespace start = run_log::start;
  namespace memory = run_log::memory;
  namespace end = run_log::end;
  Json json = {{start::program.name, log.program},
               {start::driver.name, log.driver},
               {start::mode.name, log.mode},
               {start::safety.name, log.safety},
               {start::chunk_bytes.name, log.chunk_bytes},
               {"plan", plan_of(log)},
               {"policy", log.policy},
               {start::budget_bytes.name, log.budget_bytes},
               {end::iterations_planned.name, log.iterations_planned},
               {end::iterations_on_demand.name, log.iterations_on_demand},
               {end::divergences.name, log.divergence_count},
               {end::peak_device_bytes.name, log.peak_device_bytes},
               {end::outside_bytes.name, log.outside_bytes},
               {end::peak_used_bytes.name, report::peak_of_run(log)},
               {end::peak_requested_bytes.name, log.peak_requested_bytes},
               {end::vmm_calls.name, log.vmm_calls},
               {memory::moved_bytes.name, log.moved_bytes ? Json(*log.moved_bytes) : Json(nullptr)},
               {"ended", log.ended},
               {"ending", log.ending},
               {"command_ending", log.command_ending}};
  if (log.arguments) json[start::arguments.name] = *log.arguments;
  json[run_log::on_demand::line.name] = list_json(log.reasons, reason_json);
  json["iterations"] = list_json(report::every_iteration(log), iteration_json);
  json["memory"] = list_json(log.memory, [](const report::RunMemory& one) {
    return Json{{memory::time_ns.name, one.time_ns},
                {memory::device_bytes.name, one.device_bytes},
                {memory::requested_bytes.name, one.requested_bytes}};
  });
  json["departures"] = list_json(log.divergences, divergence_json);
  json["activities"] = list_json(log.activities, activity_json);
  json["unmanaged"] = list_json(log.unmanaged, unmanaged_json);
  json["messages"] = log.messages;
  return json;
}

// As they are; what is no JSON, such as the last line of a killed program, as text.
Json lines_json(const std::string& run_log) {
  Json list = Json::array();
  std::istringstream lines(run_log);
  for (std::string line; std::getline(lines, line);) {
    Json value = Json::parse(line, nullptr, false);
    list.push_back(value.is_discarded() ? Json(line) : std::move(value));
  }
  return list;
}

}  // namespace

Result<std::string> to_json(const Inputs& inputs, const std::string& run_log) {
  Json json;
  if (inputs.trace != nullptr) json["trace"] = trace_json(*inputs.trace);
  if (inputs.plan != nullptr) json["plan"] = plan_json(*inputs.plan);
  if (inputs.log != nullptr) json["run"] = run_json(*inputs.log);
  if (!run_log.empty()) json["run"]["lines"] = lines_json(run_log);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reprise::exports
