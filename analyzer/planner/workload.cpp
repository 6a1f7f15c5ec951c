#include "analyzer/planner/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "analyzer/iteration/stretch.h"
#include "analyzer/memgraph/build.h"
#include "analyzer/taskgraph/footprint.h"
#include "preload/footprint/chunk_size.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kDefaultChunkBytes = 2 << 20;
constexpr uint64_t kMostChunks = uint64_t{1} << 27;  // of a plan: memory stays bounded whatever the budget

uint64_t info_number(const trace::Trace& trace, const char* key, uint64_t fallback) {
  const auto found = trace.info.find(key);
  if (found == trace.info.end()) return fallback;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(found->second.c_str(), &end, 10);
  return end != found->second.c_str() && *end == '\0' ? value : fallback;
}

uint64_t held_bytes_of(const trace::Trace& trace, const PlanOptions& options) {
  return options.held_bytes.value_or(info_number(trace, "memory.held_bytes", 0));
}

// What is held may be there when the tensors are not, so what was most at once is told apart; recordings of before do
// not tell. It leaves out what no hook saw.
uint64_t peak_with_held(const trace::Trace& trace, const PlanOptions& options, uint64_t footprint) {
  const uint64_t told =
      options.held_bytes ? options.peak_bytes.value_or(0) : info_number(trace, "memory.peak_bytes", 0);
  return told != 0 ? std::max(told, footprint) : footprint + held_bytes_of(trace, options);
}

uint64_t chunk_bytes_of(const trace::Trace& trace, const PlanOptions& options) {
  return options.chunk_bytes != 0 ? options.chunk_bytes : info_number(trace, "device.granularity", kDefaultChunkBytes);
}

bool in_range(uint64_t chunk_bytes) { return chunk_bytes >= 4096 && chunk_bytes <= (uint64_t{1} << 40); }

// Copies between devices whose duration the graph does not say.
void set_peer_copies(TaskGraph& graph, const Machine& machine) {
  const bool own = machine.peer_bytes_per_s > 0;
  const double rate = own ? machine.peer_bytes_per_s : std::min(machine.d2h_bytes_per_s, machine.h2d_bytes_per_s);
  for (GraphCall& entry : graph.calls) {
    if (graph.devices == 1 || entry.call.op != trace::OpKind::copy_peer || entry.call.duration_ns != 0) continue;
    const uint64_t bytes = graph.tensors[entry.call.accesses.front().tensor].size;
    entry.call.duration_ns = copy_ns(bytes, rate, own ? machine.peer_latency_ns : machine.latency_ns);
  }
}

bool copies_by_itself(const GraphCall& entry) {
  return entry.call.op == trace::OpKind::copy_host_to_device || entry.call.op == trace::OpKind::copy_device_to_host;
}

}  // namespace

// Kernels of one device run in turn whatever waits for what: then there is nothing to simulate.
uint64_t computing_alone(const TaskGraph& graph, const Machine& machine) {
  if (graph.devices == 1 && std::none_of(graph.calls.begin(), graph.calls.end(), copies_by_itself)) {
    return graph.compute_ns;
  }
  const MemGraph nothing_moves = build_mem_graph(graph, {}, {});
  return std::min(graph.compute_ns, simulate(graph, nothing_moves, machine, {}).iteration_ns);
}

void complete_workload(Workload& workload, uint64_t held_bytes, const PlanOptions& options) {
  if (!options.ssd) workload.machine.ssd_read_bytes_per_s = workload.machine.ssd_write_bytes_per_s = 0;
  set_peer_copies(workload.graph, workload.machine);
  workload.device_subgraphs = device_subgraphs_of(workload.graph);
  workload.slab_bytes = place_small_tensors(workload.graph);
  workload.held_bytes = held_bytes;
  workload.reserved_bytes = reserved_bytes(workload.graph, workload.slab_bytes, held_bytes);
  workload.largest = largest_working_set(workload.graph);
  workload.minimum_bytes = workload.largest.chunks * workload.graph.chunk_bytes + workload.reserved_bytes;
}

uint64_t chunks_that_fit(const Workload& workload, uint64_t budget) {
  return (budget - workload.reserved_bytes) / workload.graph.chunk_bytes;
}

// More chunks than there are tensors to fill them are of no use.
uint64_t useful_chunks(const Workload& workload, uint64_t budget) {
  uint64_t most = 0;
  for (const plan::Tensor& tensor : workload.graph.tensors) most += tensor.chunk_count;
  return std::min({chunks_that_fit(workload, budget), most, kMostChunks});
}

Result<Workload> make_workload(TaskGraph graph, const PlanOptions& options) {
  if (options.chunk_bytes != 0 && options.chunk_bytes != graph.chunk_bytes) {
    return Status{StatusCode::invalid_argument, "the graph was read for chunks of another size"};
  }
  if (options.machine && options.machine->devices < graph.devices) {
    return Status{
        StatusCode::invalid_argument,
        fmt::format("it is for {} devices, and the machine has {}; choose another machine, or say \"devices\" in "
                    "its file",
                    graph.devices, options.machine->devices)};
  }
  Workload workload;
  workload.machine = options.machine.value_or(Machine{});
  workload.graph = std::move(graph);
  workload.iteration.call_count = static_cast<uint32_t>(workload.graph.calls.size());
  workload.iteration.occurrences = 1;
  workload.iteration.coverage = 1;
  complete_workload(workload, options.held_bytes.value_or(0), options);
  workload.alone_ns = computing_alone(workload.graph, workload.machine);
  workload.peak_bytes = workload.graph.peak_bytes;
  return workload;
}

Planning::Planning(const trace::Trace& trace, PlanOptions options)
    : options_(std::move(options)),
      whole_(make_call_stream(trace)),
      chunk_bytes_(chunk_bytes_of(trace, options_)),
      part_trace_(options_.wanted.from_call == 0 ? std::optional<trace::Trace>()
                                                 : stretch_from(trace, options_.wanted.from_call)),
      part_(part_trace_ ? std::optional(make_call_stream(*part_trace_)) : std::nullopt) {}

const FoundLoop& Planning::loop() {
  if (!loop_) {
    loop_ = find_loop_in(
        calls(), [this](const CallStream& calls) { return find_iteration(calls, options_.wanted.least_calls); },
        options_.wanted.sizes);
  }
  return *loop_;
}

Result<Workload> Planning::workload() { return workload(loop(), chunk_bytes_); }

Result<Workload> Planning::workload_of(const LoopCalls& loop) const {
  return workload(find_loop_in(calls(), [&](const CallStream& calls) { return find_loop(calls, loop); }), chunk_bytes_);
}

Result<Workload> Planning::workload_in_fitting_chunks() {
  Result<Workload> large = workload(loop(), fitting_chunk_bytes());
  if (!large.ok()) return large;
  const uint64_t budget =
      options_.budget_bytes != 0 ? options_.budget_bytes : share_of_peak(large.value(), options_.budget_fraction);
  // Tensors smaller than half a chunk stay: a budget too small for all of them needs chunks as small as possible.
  return budget < least_budget(large.value()) ? workload() : std::move(large);
}

Result<plan::Plan> Planning::plan(PlanSummary* summary) {
  const Result<Workload> made = workload();
  if (!made.ok()) return made.status();
  return make_plan(made.value(), options_, summary);
}

Result<Workload> Planning::workload(const FoundLoop& loop, uint64_t chunk_bytes) const {
  if (!loop.iteration.ok()) return loop.iteration.status();
  if (!in_range(chunk_bytes)) {
    return Status{StatusCode::invalid_argument, fmt::format("a chunk of {} bytes is out of range", chunk_bytes)};
  }
  const trace::Trace& trace = *calls().trace;
  Workload workload;
  workload.machine = options_.machine.value_or(machine_of(trace));
  workload.iteration = loop.iteration.value();
  Result<TaskGraph> graph = build_task_graph(loop.calls ? *loop.calls : calls(), workload.iteration, chunk_bytes,
                                             workload.machine, options_.safety, options_.known);
  if (!graph.ok()) return graph.status();
  workload.graph = std::move(graph.value());
  complete_workload(workload, held_bytes_of(trace, options_), options_);
  workload.alone_ns = computing_alone(workload.graph, workload.machine);
  // What the program takes without us does not depend on the chunks that the plan is for.
  const uint64_t footprint = peak_footprint(calls(), std::min(chunk_bytes, chunk_bytes_of(trace, {})));
  workload.peak_bytes = peak_with_held(trace, options_, footprint);
  // Nor is it only what the program takes in a part of the recording.
  if (part_) workload.peak_bytes = std::max(workload.peak_bytes, peak_in(chunk_bytes));
  workload.recorded = true;
  return workload;
}

uint64_t Planning::fitting_chunk_bytes() const {
  // A program that goes on after the recording keeps its chunks.
  if (options_.chunk_bytes != 0 || info_number(*whole_.trace, "memory.managed", 0) != 0) return chunk_bytes_;
  const auto budget = options_.budget_bytes != 0
                          ? options_.budget_bytes
                          : static_cast<uint64_t>(options_.budget_fraction * static_cast<double>(peak_bytes()));
  return footprint::chunk_bytes_for(chunk_bytes_, budget, footprint::kChunksInABudget);
}

uint64_t Planning::peak_in(uint64_t chunk_bytes) const {
  if (!in_range(chunk_bytes)) return 0;
  const uint64_t peak = peak_footprint(whole_, chunk_bytes);
  return peak == 0 ? 0 : peak_with_held(*whole_.trace, options_, peak);
}

uint64_t share_of_peak(const Workload& workload, double fraction) {
  return static_cast<uint64_t>(fraction * static_cast<double>(workload.peak_bytes));
}

bool holds_everything(const Workload& workload, uint64_t budget) { return budget >= workload.peak_bytes; }

uint64_t least_budget(const Workload& workload) {
  return holds_everything(workload, workload.minimum_bytes) ? workload.peak_bytes : workload.minimum_bytes;
}

uint64_t budget_as_run(const Workload& workload, uint64_t budget) {
  if (!holds_everything(workload, budget)) return budget;
  return std::max(budget, workload.graph.peak_chunks * workload.graph.chunk_bytes + workload.reserved_bytes);
}

}  // namespace reprise::analyzer
