// The text form: stable, one line per item, for `reprise dump`, diffs and tests.
#include <fmt/format.h>

#include <iterator>

#include "analyzer/plan/names.h"
#include "analyzer/plan/plan.h"
#include "preload/trace/names.h"

namespace reprise::plan {
namespace {

using Out = std::back_insert_iterator<std::string>;

const char* name_of_mode(uint32_t mode) {
  constexpr const char* kNames[] = {"-", "r", "w", "rw", "-", "r", "wu", "rwu"};
  return kNames[mode & 7];
}

void write_head(const Plan& plan, Out out) {
  fmt::format_to(out, "plan version={} policy={} safety={} budget={} reserved={} chunks={} chunk_bytes={} slab={}\n",
                 kPlanVersion, trace::escaped(plan.policy), name_of(plan.safety), plan.budget_bytes,
                 plan.reserved_bytes, plan.chunk_count, plan.chunk_bytes, plan.slab_bytes);
  fmt::format_to(out, "link machine={} assumed={} h2d={} d2h={} latency_ns={} remap_ns={}\n",
                 plan.link.machine.empty() ? "-" : trace::escaped(plan.link.machine), plan.link.assumed ? 1 : 0,
                 plan.link.h2d_bytes_per_s, plan.link.d2h_bytes_per_s, plan.link.latency_ns,
                 plan.link.remap_ns_per_chunk);
  if (device_count(plan) > 1) {
    fmt::format_to(out, "devices {}, their chunks:", device_count(plan));
    for (const uint32_t chunks : plan.device_chunks) fmt::format_to(out, " {}", chunks);
    fmt::format_to(out, "\n");
  }
  fmt::format_to(out, "program {} hash={:016x} iteration={:016x}\n", trace::escaped(plan.program), plan.program_hash,
                 plan.iteration_hash);
  fmt::format_to(out, "sizes peak={} minimum={} offload={} reload={} remaps={} compute_ns={} predicted_ns={}\n",
                 plan.peak_bytes, plan.minimum_bytes, plan.offload_bytes, plan.reload_bytes, plan.remap_count,
                 plan.compute_ns, plan.predicted_ns);
}

void write_tensor(const Plan& plan, uint32_t index, Out out) {
  const Tensor& tensor = plan.tensors[index];
  fmt::format_to(out, "tensor {} size={} allocation={} chunks={}", index, tensor.size, tensor.recorded_allocation,
                 tensor.chunk_count);
  if (tensor.allocate_call == kNone) {
    fmt::format_to(out, " persistent{}{}", tensor.resident_at_start ? " resident" : "",
                   tensor.clean_at_start ? " clean" : "");
  } else {
    fmt::format_to(out, " transient {}..{}", tensor.allocate_call, tensor.free_call);
    if (tensor.chunk_count == 0) fmt::format_to(out, " slab@{}", tensor.slab_offset);
  }
  if (tensor.home != kNone) fmt::format_to(out, " home={}", tensor.home);
  if (tensor.device != 0) fmt::format_to(out, " device={}", tensor.device);
  if (tensor.recompute_of != kNone) fmt::format_to(out, " recompute_of={}", tensor.recompute_of);
  if (tensor.part_of != kNone) fmt::format_to(out, " part_of={}+{}", tensor.part_of, tensor.part_offset);
  if (tensor.aliased) fmt::format_to(out, " aliased");
  fmt::format_to(out, "\n");
}

// Runs of consecutive chunks as a-b.
void write_placement(const Plan& plan, uint32_t index, Out out) {
  const std::vector<uint32_t>& chunks = plan.placements[index].chunks;
  fmt::format_to(out, "placement {}:", index);
  for (size_t first = 0; first < chunks.size();) {
    size_t last = first;
    while (last + 1 < chunks.size() && chunks[last + 1] == chunks[last] + 1) ++last;
    if (first == last) {
      fmt::format_to(out, " {}", chunks[first]);
    } else {
      fmt::format_to(out, " {}-{}", chunks[first], chunks[last]);
    }
    first = last + 1;
  }
  fmt::format_to(out, "\n");
}

void write_call(const Plan& plan, uint32_t index, Out out) {
  const Call& call = plan.calls[index];
  fmt::format_to(out, "call {} {}", index, name_of(call.kind));
  if (call.tensor != kNone) fmt::format_to(out, " tensor={}", call.tensor);
  if (call.vertex != kNone) fmt::format_to(out, " vertex={}", call.vertex);
  fmt::format_to(out, " stream={} flags={} signature={:016x} ns={} {}", call.stream, call.flags, call.signature,
                 call.duration_ns, trace::escaped(call.name));
  if (call.device != 0) fmt::format_to(out, " device={}", call.device);
  if (call.recompute_of != kNone) fmt::format_to(out, " recompute_of={}", call.recompute_of);
  if (call.inserted) fmt::format_to(out, " inserted");
  if (call.waited != 0) fmt::format_to(out, " waited={}", call.waited);
  if (call.audited != 0) fmt::format_to(out, " audited={:016x}", call.audited);
  for (const uint32_t word : call.null_words) fmt::format_to(out, " null@{}", word);
  for (const OpAccess& access : call.accesses) {
    fmt::format_to(out, " [{}+{}:{} {}]", access.tensor, access.offset, access.size, name_of_mode(access.mode));
  }
  fmt::format_to(out, "\n");
}

void write_vertex(const Plan& plan, uint32_t index, Out out) {
  const Vertex& vertex = plan.vertices[index];
  fmt::format_to(out, "vertex {} {}", index, name_of(vertex.kind));
  if (vertex.call != kNone) fmt::format_to(out, " call={}", vertex.call);
  if (vertex.tensor != kNone) fmt::format_to(out, " tensor={}", vertex.tensor);
  if (vertex.clean) fmt::format_to(out, " clean");
  fmt::format_to(out, " {}..{}", vertex.predicted_start_ns, vertex.predicted_end_ns);
  for (const Acquire& acquire : vertex.acquires)
    fmt::format_to(out, " acquire={}@{}", acquire.tensor, acquire.placement);
  for (const Predecessor& predecessor : vertex.predecessors) {
    fmt::format_to(out, " {}{}:{}", predecessor.vertex, predecessor.distance == 1 ? "'" : "",
                   name_of(predecessor.kind));
  }
  fmt::format_to(out, "\n");
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text;
  const Out out = std::back_inserter(text);
  write_head(plan, out);
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) write_tensor(plan, i, out);
  for (uint32_t i = 0; i < plan.placements.size(); ++i) write_placement(plan, i, out);
  for (uint32_t i = 0; i < plan.calls.size(); ++i) write_call(plan, i, out);
  for (uint32_t i = 0; i < plan.vertices.size(); ++i) write_vertex(plan, i, out);
  fmt::format_to(out, "order");
  for (const uint32_t vertex : plan.order) fmt::format_to(out, " {}", vertex);
  fmt::format_to(out, "\n");
  return text;
}

}  // namespace reprise::plan
