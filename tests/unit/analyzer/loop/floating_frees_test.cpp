// Programs that differ from iteration to iteration in where their frees stand are planned as one that frees in order.
#include "analyzer/loop/floating_frees.h"

#include <map>
#include <random>

#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

// Steps of `layers` forward and backward; a free comes up to `late` launches behind its tensor's last use.
trace::Trace program_of(uint32_t seed, int steps, int layers, int late) {
  std::mt19937 random(seed);
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < layers; ++i) weights.push_back(program.allocate(kChunk));
  std::vector<std::pair<int, uint64_t>> garbage;  // launches that are left, allocation
  const auto collect = [&](bool all) {
    std::shuffle(garbage.begin(), garbage.end(), random);
    std::erase_if(garbage, [&](std::pair<int, uint64_t>& one) {
      if (--one.first >= 0 && !all) return false;
      program.free(one.second);
      return true;
    });
  };
  const auto drop = [&](uint64_t allocation) {
    garbage.emplace_back(late == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(late + 1)), allocation);
  };
  for (int step = 0; step < steps; ++step) {
    std::vector<uint64_t> activations{program.allocate(kChunk)};
    program.launch("batch", {writes(activations[0])});
    for (int i = 0; i < layers; ++i) {
      const auto at = static_cast<size_t>(i);
      activations.push_back(program.allocate(kChunk + at * 4096));
      program.launch("forward", {reads(activations[at]), reads(weights[at]), writes(activations.back())});
      collect(false);
    }
    for (size_t i = weights.size(); i-- > 0;) {
      program.launch("backward", {updates(weights[i]), reads(activations[i]), reads(activations[i + 1])});
      drop(activations[i + 1]);
      collect(false);
    }
    program.launch("update", {updates(weights[0])});
    drop(activations[0]);
    collect(random() % 3 != 0);
  }
  return program.trace();
}

// By signature, frees left out.
std::vector<uint64_t> work_of(const TaskGraph& graph) {
  std::vector<uint64_t> work;
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind != plan::CallKind::free) work.push_back(entry.call.signature);
  }
  return work;
}

TEST(FloatingFrees, TheIterationIsThatOfTheProgramThatFreesInOrder) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const int layers = 2 + static_cast<int>(seed % 7);
    const int late = 1 + static_cast<int>(seed % 5);
    const trace::Trace ordered = program_of(seed, 8, layers, 0);
    const Workload in_order = good(Planning(ordered, {}).workload());
    const trace::Trace trace = program_of(seed, 8, layers, late);
    Planning planning(trace, {});
    const Workload floats = good(planning.workload());
    ASSERT_EQ(work_of(floats.graph), work_of(in_order.graph)) << seed;
    ASSERT_EQ(floats.graph.calls.size(), in_order.graph.calls.size()) << seed;
    ASSERT_EQ(floats.graph.tensors.size(), in_order.graph.tensors.size()) << seed;
    ASSERT_EQ(floats.peak_bytes, planning.peak_bytes()) << "what the program takes is what was recorded";
  }
}

// No free of the plan comes before the one of any iteration that was recorded, but at the end of an iteration.
TEST(FloatingFrees, APlansFreeIsAsLateAsAnyThatWasRecorded) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const trace::Trace trace = program_of(seed, 8, 5, 4);
    const CallStream recorded = make_call_stream(trace);
    const CallStream floated = frees_at_last_use(recorded);
    const Iteration found = good(find_iteration(floated));
    const CallStream late = frees_as_late(recorded, floated, found).value();
    ASSERT_EQ(late.size(), recorded.size());
    const auto work_before = [](const CallStream& stream, uint32_t call) {
      uint32_t work = 0;
      for (uint32_t i = 0; i < call; ++i) {
        const uint32_t span = stream.allocations[i];
        work += span == kNone || stream.spans[span].allocated == i ? 1u : 0u;
      }
      return work;
    };
    for (uint32_t i = 0; i < found.call_count; ++i) {
      const uint32_t span = late.allocations[found.first_call + i];
      if (span == kNone || late.spans[span].allocated == found.first_call + i) continue;
      const uint32_t end = work_before(late, found.first_call + found.call_count);
      ASSERT_GE(work_before(late, found.first_call + i),
                std::min(end, work_before(recorded, recorded.spans[span].freed)));
    }
    for (uint32_t call = 0; call < late.size(); ++call) {  // the same allocations are alive where all have come
      if (late.live_bytes[call] != 0) continue;
      ASSERT_EQ(late.live_hash[call], 0u);
    }
  }
}

// "The loss until it is assigned again" is alive where each iteration begins.
TEST(FloatingFrees, AProgramThatKeepsSomethingOverEachBoundaryIsNotOfThem) {
  TraceBuilder program;
  const uint64_t weight = program.allocate(kChunk);
  uint64_t before = 0;
  for (int step = 0; step < 8; ++step) {
    const uint64_t loss = program.allocate(kChunk);
    program.launch("loss", {writes(loss), updates(weight)});
    program.launch("update", {reads(loss), updates(weight)});
    program.launch("log", {updates(weight)});
    if (before != 0) program.free(before);
    before = loss;
  }
  const CallStream recorded = make_call_stream(program.trace());
  const CallStream floated = frees_at_last_use(recorded);
  EXPECT_FALSE(frees_as_late(recorded, floated, good(find_iteration(floated))));
}

// What is missing in the recording stands between a use that nobody saw and the free.
TEST(FloatingFrees, NoFreeCrossesAPlaceWhereRecordsAreMissing) {
  trace::Trace trace = program_of(1, 4, 3, 2);
  CallStream recorded = make_call_stream(trace);
  for (uint32_t call = 0; call < recorded.size(); call += 2) recorded.incomplete.push_back(call);
  const CallStream floated = frees_at_last_use(recorded);
  for (size_t i = 0; i < recorded.incomplete.size(); ++i) {
    EXPECT_EQ(floated.events[floated.incomplete[i]], recorded.events[recorded.incomplete[i]]);
  }
}

}  // namespace
}  // namespace reprise::analyzer
