#include "analyzer/planner/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "analyzer/iteration/floating_frees.h"
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

// Of less than this much of the recording, an iteration is looked for with frees that float.
constexpr double kMostOfIt = 0.5;

Result<Iteration> look_for_iteration(const CallStream& stream, const PlanOptions& options) {
  return options.loop.count != 0 ? find_loop(stream, options.mark, options.loop)
                                 : find_iteration(stream, options.mark, options.least_calls);
}

// Where the calls as recorded do not repeat, but do so in another order of frees, *stream gets that order.
Result<Iteration> find_in_any_order(CallStream* stream, const PlanOptions& options) {
  Result<Iteration> found = look_for_iteration(*stream, options);
  const double before = found.ok() ? found.value().coverage : 0;
  if (before >= kMostOfIt) return found;
  const CallStream floated = frees_at_last_use(*stream);
  const Result<Iteration> equal = look_for_iteration(floated, options);
  if (!equal.ok() || equal.value().coverage < std::max(before, kMostOfIt)) return found;
  std::optional<CallStream> late = frees_as_late(*stream, floated, equal.value());
  if (!late) return found;
  *stream = std::move(*late);
  return equal;
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

Result<Workload> make_workload(const trace::Trace& trace, const PlanOptions& options) {
  if (options.from_call != 0) {
    PlanOptions rest = options;
    rest.from_call = 0;
    Result<Workload> workload = make_workload(stretch_from(trace, options.from_call), rest);
    // What the program takes is not only what it takes in this part.
    if (workload.ok()) workload.value().peak_bytes = std::max(workload.value().peak_bytes, peak_of(trace, rest));
    return workload;
  }
  Workload workload;
  workload.machine = options.machine.value_or(machine_of(trace));
  CallStream stream = make_call_stream(trace);
  const uint64_t granule = std::min(chunk_bytes_of(trace, options), chunk_bytes_of(trace, {}));
  // What the program takes without us does not depend on the chunks that the plan is for.
  const uint64_t footprint = in_range(granule) ? peak_footprint(stream, granule) : 0;
  Result<Iteration> iteration = find_in_any_order(&stream, options);
  if (!iteration.ok()) return iteration.status();
  workload.iteration = iteration.value();
  const uint64_t chunk_bytes = chunk_bytes_of(trace, options);
  if (!in_range(chunk_bytes)) {
    return Status{StatusCode::invalid_argument, fmt::format("a chunk of {} bytes is out of range", chunk_bytes)};
  }
  Result<TaskGraph> graph = build_task_graph(stream, workload.iteration, chunk_bytes, workload.machine, options.safety,
                                             options.facts ? &*options.facts : nullptr);
  if (!graph.ok()) return graph.status();
  workload.graph = std::move(graph.value());
  complete_workload(workload, held_bytes_of(trace, options), options);
  workload.alone_ns = computing_alone(workload.graph, workload.machine);
  workload.peak_bytes = peak_with_held(trace, options, footprint);
  workload.recorded = true;
  return workload;
}

uint64_t chunk_bytes_for(const trace::Trace& trace, const PlanOptions& options) {
  if (options.chunk_bytes != 0) return options.chunk_bytes;
  if (info_number(trace, "memory.managed", 0) != 0) return 0;  // the program that the plan is for goes on, in chunks
  const uint64_t granularity = chunk_bytes_of(trace, options);
  const auto budget =
      options.budget_bytes != 0
          ? options.budget_bytes
          : static_cast<uint64_t>(options.budget_fraction * static_cast<double>(peak_of(trace, options)));
  const uint64_t chosen = footprint::chunk_bytes_for(granularity, budget, footprint::kChunksInABudget);
  return chosen == granularity ? 0 : chosen;
}

uint64_t peak_of(const trace::Trace& trace, const PlanOptions& options) {
  const uint64_t chunk_bytes = chunk_bytes_of(trace, options);
  if (!in_range(chunk_bytes)) return 0;
  const uint64_t peak = peak_footprint(make_call_stream(trace), chunk_bytes);
  return peak == 0 ? 0 : peak_with_held(trace, options, peak);
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
