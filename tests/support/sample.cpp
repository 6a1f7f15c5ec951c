#include "tests/support/sample.h"

namespace reprise::tools::test {
namespace {

using plan::CallKind;
using plan::VertexKind;

class Builder {
 public:
  plan::Plan plan;

  uint32_t tensor(uint64_t size, bool persistent, uint32_t home) {
    plan::Tensor tensor;
    tensor.size = size;
    tensor.recorded_allocation = plan.tensors.size() + 1;
    if (size >= kMiB) {
      tensor.chunk_count = static_cast<uint32_t>(size / plan.chunk_bytes);
      tensor.home = home;
      tensor.resident_at_start = persistent;
    }
    plan.tensors.push_back(tensor);
    return static_cast<uint32_t>(plan.tensors.size() - 1);
  }
  void allocate(uint32_t tensor) { plan.tensors[tensor].allocate_call = add_call(CallKind::allocate, tensor); }
  uint32_t release(uint32_t tensor, uint64_t time) {
    const uint32_t call = add_call(CallKind::free, tensor);
    plan.tensors[tensor].free_call = call;
    return plan.calls[call].vertex = add_vertex(VertexKind::release, call, tensor, time, time);
  }
  uint32_t op(const char* name, uint64_t start, uint64_t end, const std::vector<uint32_t>& tensors) {
    const uint32_t call = add_call(CallKind::op, plan::kNone);
    plan.calls[call].op = trace::OpKind::launch;
    plan.calls[call].name = name;
    plan.calls[call].duration_ns = end - start;
    plan.compute_ns += end - start;
    for (const uint32_t one : tensors) {
      plan::OpAccess access;
      access.tensor = one;
      access.mode = trace::kAccessRead | trace::kAccessWrite;
      plan.calls[call].accesses.push_back(access);
    }
    return plan.calls[call].vertex = add_vertex(VertexKind::op, call, plan::kNone, start, end);
  }
  uint32_t move(VertexKind kind, uint32_t tensor, uint64_t start, uint64_t end) {
    (kind == VertexKind::offload ? plan.offload_bytes : plan.reload_bytes) += plan.tensors[tensor].size;
    const uint32_t vertex = add_vertex(kind, plan::kNone, tensor, start, end);
    if (kind == VertexKind::reload) acquire(vertex, tensor);
    return vertex;
  }
  void acquire(uint32_t vertex, uint32_t tensor) {
    plan.vertices[vertex].acquires.push_back({tensor, plan.tensors[tensor].home});
  }
  void after(uint32_t vertex, uint32_t before, plan::EdgeKind kind) {
    plan.vertices[vertex].predecessors.push_back({before, kind, 0});
  }

 private:
  uint32_t add_call(CallKind kind, uint32_t tensor) {
    plan::Call call;
    call.kind = kind;
    call.tensor = tensor;
    plan.calls.push_back(call);
    return static_cast<uint32_t>(plan.calls.size() - 1);
  }
  uint32_t add_vertex(VertexKind kind, uint32_t call, uint32_t tensor, uint64_t start, uint64_t end) {
    plan::Vertex vertex;
    vertex.kind = kind;
    vertex.call = call;
    vertex.tensor = tensor;
    vertex.predicted_start_ns = start;
    vertex.predicted_end_ns = end;
    plan.vertices.push_back(vertex);
    plan.order.push_back(static_cast<uint32_t>(plan.vertices.size() - 1));
    return plan.order.back();
  }
};

void set_totals(plan::Plan& plan) {
  plan.program = "trainer --steps 3";
  plan.policy = "sample";
  plan.budget_bytes = 10 * kMiB;
  plan.reserved_bytes = kMiB;
  plan.chunk_count = 4;
  plan.peak_bytes = 12 * kMiB + 1024;
  plan.minimum_bytes = 9 * kMiB;
  plan.predicted_ns = 750;
}

void add_op(trace::Trace& trace, uint64_t& sequence, uint64_t time, uint32_t function,
            const std::vector<uint64_t>& allocations) {
  trace::Op op{};
  op.record.header.sequence = ++sequence;
  op.record.op = trace::OpKind::launch;
  op.record.function = function;
  op.record.time_ns = time;
  for (const uint64_t one : allocations) {
    trace::AccessRecord access{};
    access.allocation = one;
    access.parameter_offset = trace::kNoParameter;
    access.mode = 3;
    op.accesses.push_back(access);
  }
  trace.events.emplace_back(op);
  trace::ActivityRecord activity{};
  activity.header.sequence = sequence;
  activity.start_ns = time + 10;
  activity.end_ns = time + 60;
  trace.activities[sequence] = activity;
}

void add_allocate(trace::Trace& trace, uint64_t& sequence, uint64_t time, uint64_t id, uint64_t size,
                  trace::Origin origin = trace::Origin::alloc) {
  trace::Allocate allocate{};
  allocate.record.header.sequence = ++sequence;
  allocate.record.allocation = id;
  allocate.record.size = size;
  allocate.record.time_ns = time;
  allocate.record.origin = origin;
  allocate.record.call_site = id % 2 == 0 ? 2 : 1;
  trace.events.emplace_back(allocate);
}

void add_free(trace::Trace& trace, uint64_t& sequence, uint64_t time, uint64_t id) {
  trace::Free release{};
  release.record.header.sequence = ++sequence;
  release.record.allocation = id;
  release.record.time_ns = time;
  trace.events.emplace_back(release);
}

}  // namespace

plan::Plan sample_plan() {
  Builder build;
  build.plan.chunk_bytes = 2 * kMiB;
  build.plan.placements = {{{0, 1}}, {{2, 3}}};
  const uint32_t kept = build.tensor(4 * kMiB, true, 0), small = build.tensor(1024, true, plan::kNone);
  const uint32_t first = build.tensor(4 * kMiB, false, 1), second = build.tensor(4 * kMiB, false, 1);
  build.allocate(first);
  const uint32_t make = build.op("_Z4makePf", 0, 100, {kept, first});
  build.acquire(make, first);
  const uint32_t offload = build.move(VertexKind::offload, first, 100, 300);
  build.after(offload, make, plan::EdgeKind::data);
  build.allocate(second);
  const uint32_t other = build.op("other", 300, 400, {second, small});
  build.acquire(other, second);
  build.after(other, offload, plan::EdgeKind::memory);
  const uint32_t both = build.op("both", 400, 450, {kept, second});
  build.after(both, other, plan::EdgeKind::data);
  const uint32_t freed = build.release(second, 450);
  build.after(freed, both, plan::EdgeKind::data);
  const uint32_t reload = build.move(VertexKind::reload, first, 450, 650);
  build.after(reload, freed, plan::EdgeKind::memory);
  const uint32_t use = build.op("_Z3usePf", 650, 750, {first});
  build.after(use, reload, plan::EdgeKind::data);
  build.after(build.release(first, 750), use, plan::EdgeKind::data);
  set_totals(build.plan);
  return build.plan;
}

trace::Trace sample_trace() {
  trace::Trace trace;
  trace.info = {{"program", "trainer --steps 3"}};
  trace.functions = {{1, "_Z4makePf", {}, true}, {2, "_Z3usePf", {}, true}};
  trace.call_sites = {"make_buffer\nmain", "read_weights\nmain"};
  trace.ended = true;
  uint64_t sequence = 0;
  add_allocate(trace, sequence, 1000, 1, 4 * kMiB);
  add_allocate(trace, sequence, 1000, 2, kMiB, trace::Origin::global);
  for (uint64_t step = 0; step < 2; ++step) {
    const uint64_t now = 2000 + 1000 * step;
    add_allocate(trace, sequence, now, 3 + step, 4 * kMiB);
    add_op(trace, sequence, now + 100, 1, {1, 3 + step});
    add_op(trace, sequence, now + 200, 2, {3 + step});
    add_free(trace, sequence, now + 300, 3 + step);
  }
  return trace;
}

std::string sample_run_log() {
  return R"({"kind":"start","program":"trainer --steps 3","driver":"sim","budget_bytes":10485760,"chunk_bytes":2097152,"mode":"run"}
{"kind":"plan","path":"/tmp/p.plan","policy":"sample"}
{"kind":"memory","time_ns":5000,"device_bytes":4194304,"requested_bytes":4194304}
{"kind":"iteration","index":0,"mode":"on_demand","wall_ns":2000,"offload_bytes":0,"reload_bytes":0,"stall_ns":0,"vmm_calls":12}
{"kind":"activate","iteration":1,"vmm_calls":8}
{"kind":"memory","time_ns":6000,"device_bytes":9437184,"requested_bytes":12582912}
{"kind":"iteration","index":1,"mode":"planned","wall_ns":800,"offload_bytes":4194304,"reload_bytes":4194304,"stall_ns":300,"vmm_calls":0}
{"kind":"activity","iteration":1,"vertex":0,"engine":"compute","start_ns":9000,"end_ns":9100}
{"kind":"activity","iteration":1,"vertex":1,"engine":"d2h","start_ns":9050,"end_ns":9300}
{"kind":"activity","iteration":1,"vertex":2,"engine":"compute","start_ns":9310,"end_ns":9400}
{"kind":"iteration","index":2,"mode":"planned","wall_ns":820,"offload_bytes":4194304,"reload_bytes":4194304,"stall_ns":320,"vmm_calls":0}
{"kind":"overlap","iteration":1,"compute_ns":190,"copy_ns":250,"both_ns":50}
{"kind":"divergence","iteration":3,"call":2,"expected":"_Z4makePf","got":"evaluate"}
{"kind":"divergence","iteration":4,"reason":"a launch failed"}
{"kind":"unmanaged","what":"memory shared with other processes","count":1,"bytes":65536}
{"kind":"from the future","x":1}
{"kind":"end","iterations_planned":2,"iterations_on_demand":1,"divergences":2,"peak_device_bytes":9437184,"budget_bytes":10485760,"peak_requested_bytes":12582912}
)";
}

}  // namespace reprise::tools::test
