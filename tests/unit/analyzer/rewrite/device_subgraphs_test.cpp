// Several devices: each one's memory is planned on its own, the links between them and to the host are shared, and the
// verifier keeps them apart.
#include "analyzer/rewrite/device_subgraphs.h"

#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "analyzer/verify/verify.h"
#include "tests/support/graph_builder.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using testing::GraphBuilder;

constexpr uint64_t kChunk = 2 << 20;
constexpr uint64_t kMs = 1'000'000;

Machine machine_with(uint32_t devices) {
  Machine machine;
  machine.devices = devices;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = static_cast<double>(kChunk) * 1000;  // 1 ms for a chunk
  machine.latency_ns = 0;
  return machine;
}

// A training step on each of several devices: `layers` weights that are read on the way there and updated on the way
// back, what each layer makes is kept, small scratch, and the first device's results go to the second and so on.
TaskGraph training(uint32_t devices, uint32_t layers, uint64_t duration_ns = 500'000) {
  GraphBuilder builder(devices);
  std::vector<std::vector<uint32_t>> weights(devices);
  std::vector<std::vector<uint32_t>> kept(devices);
  for (auto& list : weights) {
    for (uint32_t i = 0; i < layers; ++i) {
      list.push_back(builder.persistent(static_cast<uint32_t>(&list - weights.data()), 1 + i % 3));
    }
  }
  for (uint32_t d = 0; d < devices; ++d) {
    for (uint32_t i = 0; i < layers; ++i) kept[d].push_back(builder.transient(d, 2));
  }
  for (uint32_t i = 0; i < layers; ++i) {
    for (uint32_t d = 0; d < devices; ++d) {
      std::vector<uint32_t> in = {weights[d][i]};
      if (i > 0) in.push_back(kept[d][i - 1]);
      builder.kernel(d, "forward", in, {kept[d][i]}, duration_ns);
      if (devices == 1 || i % 2 == 0) continue;
      const uint32_t there = (d + 1) % devices;
      const uint32_t copy = builder.transient(there, 2);
      builder.peer("exchange", kept[d][i], copy);
      builder.kernel(there, "reduce", {copy}, {weights[there][0]}, duration_ns / 2);
    }
  }
  for (uint32_t i = layers; i-- > 0;) {
    for (uint32_t d = 0; d < devices; ++d) {
      builder.kernel(d, "backward", {weights[d][i], kept[d][i]}, {weights[d][i]}, duration_ns);
    }
  }
  return builder.build();
}

struct Planned {
  Workload workload;
  plan::Plan plan;
  PlanSummary summary;
};

Planned planned(TaskGraph graph, const Machine& machine, const std::string& policy, uint64_t spare_chunks) {
  Planned result;
  PlanOptions options;
  options.machine = machine;
  options.policy = policy;
  Result<Workload> workload = make_workload(std::move(graph), options);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  if (!workload.ok()) return result;
  result.workload = std::move(workload.value());
  options.budget_bytes = result.workload.minimum_bytes + spare_chunks * kChunk;
  Result<plan::Plan> plan = make_plan(result.workload, options, &result.summary);
  EXPECT_TRUE(plan.ok()) << policy << ": " << plan.status().message();
  if (plan.ok()) result.plan = std::move(plan.value());
  return result;
}

TEST(Devices, EveryPolicyPlansForAllOfThem) {
  for (const Policy* policy : all_policies()) {
    const Planned result = planned(training(3, 8), machine_with(3), std::string(policy->name()), 3);
    ASSERT_EQ(plan::device_count(result.plan), 3u) << policy->name();
    EXPECT_GT(result.plan.offload_bytes, 0u) << policy->name();
    const uint64_t most = (result.plan.budget_bytes - result.plan.reserved_bytes) / kChunk;
    for (const uint32_t chunks : result.plan.device_chunks) {
      EXPECT_LE(chunks, most);
      EXPECT_GT(chunks, 0u);
    }
    EXPECT_GE(result.plan.predicted_ns, result.summary.bounds.iteration_ns) << policy->name();
    EXPECT_GE(result.plan.predicted_ns, result.plan.compute_ns);
  }
}

// Devices that have nothing to do with each other take the time of one, and twice the bytes.
TEST(Devices, TwinsThatShareNothingAreAsFastAsOne) {
  const auto twins = [](uint32_t devices) {
    GraphBuilder builder(devices);
    std::vector<std::vector<uint32_t>> weights(6);
    for (auto& of_layer : weights) {
      for (uint32_t d = 0; d < devices; ++d) of_layer.push_back(builder.persistent(d));
    }
    for (const auto& of_layer : weights) {
      for (uint32_t d = 0; d < devices; ++d) builder.kernel(d, "layer", {of_layer[d]}, {of_layer[d]}, kMs / 2);
    }
    return builder.build();
  };
  const Planned one = planned(twins(1), machine_with(1), "disco", 2);
  const Planned two = planned(twins(2), machine_with(2), "disco", 2);
  EXPECT_EQ(two.plan.predicted_ns, one.plan.predicted_ns);
  EXPECT_EQ(two.plan.compute_ns, one.plan.compute_ns);
  EXPECT_EQ(two.plan.reload_bytes, 2 * one.plan.reload_bytes);
  EXPECT_EQ(two.plan.offload_bytes, 2 * one.plan.offload_bytes);
  EXPECT_EQ(two.plan.chunk_count, 2 * one.plan.chunk_count);
  EXPECT_EQ(two.summary.bounds.iteration_ns, one.summary.bounds.iteration_ns);
  // On one link they take turns.
  Machine shared = machine_with(2);
  shared.devices_per_link = 2;
  const Planned slow = planned(twins(2), shared, "disco", 2);
  EXPECT_GT(slow.plan.predicted_ns, two.plan.predicted_ns);
  EXPECT_GE(slow.plan.predicted_ns, slow.plan.reload_bytes / kChunk * kMs);
  EXPECT_EQ(slow.summary.bounds.iteration_ns, 2 * two.summary.bounds.reload_ns);
}

TEST(Devices, CopiesBetweenThemTakeTheirOwnLinkOrThatToTheHost) {
  GraphBuilder builder(2);
  const uint32_t first = builder.transient(0, 4), second = builder.transient(1, 4);
  builder.kernel(0, "make", {}, {first}, kMs);
  builder.peer("move", first, second);
  builder.kernel(1, "use", {second}, {}, kMs);
  builder.synchronize_at_end();
  const TaskGraph graph = builder.build();
  Machine machine = machine_with(2);
  EXPECT_EQ(planned(graph, machine, "disco", 0).plan.predicted_ns, 6 * kMs);
  machine.peer_bytes_per_s = 4 * machine.h2d_bytes_per_s;
  machine.peer_latency_ns = 1000;
  EXPECT_EQ(planned(graph, machine, "disco", 0).plan.predicted_ns, 3 * kMs + 1000);
}

TEST(Devices, AMachineWithTooFewOfThemIsRefused) {
  PlanOptions options;
  options.machine = machine_with(2);
  const Status status = make_workload(training(3, 2), options).status();
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_TRUE(has(status.message(), "3 devices"));
}

TEST(Devices, ViewsHaveTheirOwnTensorsAndTheOpsThatUseThem) {
  const TaskGraph graph = training(2, 3);
  const std::vector<DeviceSubgraph> subgraphs = device_subgraphs_of(graph);
  ASSERT_EQ(subgraphs.size(), 2u);
  EXPECT_TRUE(device_subgraphs_of(training(1, 3)).empty());
  size_t tensors = 0;
  for (uint32_t d = 0; d < 2; ++d) {
    const DeviceSubgraph& subgraph = subgraphs[d];
    tensors += subgraph.graph.tensors.size();
    uint64_t compute = 0;
    for (uint32_t call = 0; call < subgraph.graph.calls.size(); ++call) {
      const plan::Call& here = subgraph.graph.calls[call].call;
      const plan::Call& whole = graph.calls[subgraph.call_of[call]].call;
      EXPECT_EQ(here.name, whole.name);
      if (here.kind != plan::CallKind::op) {
        EXPECT_EQ(subgraph.tensor_of[here.tensor], whole.tensor);
        continue;
      }
      for (const plan::OpAccess& access : here.accesses) {
        EXPECT_EQ(graph.tensors[subgraph.tensor_of[access.tensor]].device, d);
      }
      compute += here.duration_ns;
    }
    EXPECT_EQ(compute, subgraph.graph.compute_ns);
  }
  EXPECT_EQ(tensors, graph.tensors.size());
}

// A kernel that reaches into another device, and a tensor whose chunks are another device's.
TEST(Devices, TheVerifierKeepsThemApart) {
  const Planned result = planned(training(2, 6), machine_with(2), "disco", 3);
  ASSERT_TRUE(verify(result.plan).ok());
  plan::Plan wrong = result.plan;
  const auto op = std::find_if(wrong.calls.begin(), wrong.calls.end(), [](const plan::Call& call) {
    return call.kind == plan::CallKind::op && call.op == trace::OpKind::launch;
  });
  op->device = 1 - op->device;
  EXPECT_TRUE(has(verify(wrong).message(), "which is on device"));
  wrong = result.plan;
  wrong.tensors[0].device = 1;
  EXPECT_FALSE(verify(wrong).ok());
}

// The same bytes of two devices' slabs are different bytes; those of one device are not.
TEST(Devices, SlabsAreTheirOwn) {
  TaskGraph graph = training(2, 2);
  std::vector<uint32_t> small;
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    if (is_persistent(graph.tensors[t])) continue;
    graph.tensors[t].size = 1000;
    graph.tensors[t].chunk_count = 0;
    small.push_back(t);
  }
  complete_task_graph(graph);
  const Planned result = planned(graph, machine_with(2), "disco", 1);
  plan::Plan plan = result.plan;
  ASSERT_TRUE(verify(plan).ok()) << verify(plan).message();
  const auto same_place = [&](uint32_t a, uint32_t b) {
    return plan.tensors[a].slab_offset == plan.tensors[b].slab_offset &&
           plan.tensors[a].device != plan.tensors[b].device;
  };
  bool found = false;
  for (const uint32_t a : small) {
    for (const uint32_t b : small) found = found || same_place(a, b);
  }
  EXPECT_TRUE(found);
  EXPECT_LE(plan.slab_bytes, 1024u * small.size() / 2);
}

}  // namespace
}  // namespace reprise::analyzer
