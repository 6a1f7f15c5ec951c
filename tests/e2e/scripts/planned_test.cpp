// Planned mode: iterations run by a plan give the same bytes as without Reprise, divergence is harmless wherever it
// happens, and the steady state makes no memory mapping calls.
#include <cuda.h>

#include "analyzer/plan/plan.h"
#include "analyzer/planner/planner.h"
#include "preload/trace/reader.h"
#include "tests/e2e/scripts/script_runner.h"
#include "tests/e2e/scripts/training.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kChunk = 64 * 1024;

// Records `script` under the budget and plans it. Returns the plan's path.
std::string make_plan_file(const std::string& script, uint64_t budget, plan::Plan* plan) {
  const std::string trace = scratch_file("trace");
  const Outcome recorded =
      run_managed(script, std::to_string(budget), {{"REPRISE_TRACE", trace}, {"REPRISE_PLANNER", "/nonexistent"}});
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  Result<trace::Trace> read = trace::read_trace(trace);
  EXPECT_TRUE(read.ok()) << read.status().message();
  if (!read.ok()) return "";
  analyzer::PlanOptions options;
  options.budget_bytes = budget;
  options.safety = plan::Safety::strict;
  Result<plan::Plan> made = analyzer::Planning(read.value(), options).plan();
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return "";
  *plan = made.value();
  std::string path = scratch_file("plan");
  EXPECT_TRUE(plan::write_plan(*plan, path).ok());
  return path;
}

Outcome run_planned(const std::string& script, uint64_t budget, const std::string& plan, const Variables& more = {}) {
  Variables variables = {{"REPRISE_PLAN", plan}};
  variables.insert(more.begin(), more.end());
  return run_managed(script, std::to_string(budget), variables);
}

uint64_t planned_iterations(const Outcome& outcome) {
  const auto end = lines_of_kind(outcome.run_log, "end");
  return end.empty() ? 0 : number_in(end.back(), "iterations_planned");
}

class PlannedTest : public testing::TestWithParam<bool> {
 protected:
  // Runs a training loop by a plan: same bytes, within the budget. The numbers of its planned iterations under `key`.
  std::vector<uint64_t> numbers_of_iterations(const std::string& safety, const std::string& key) {
    Training training;
    training.stream_ordered = GetParam();
    const uint64_t budget = 30 * kChunk;  // of 6 * (4 + 4 + 3) + 3 + ...
    const std::string path = make_plan_file(training.script(6), budget, &plan_);
    const std::string script = training.script(12);
    const Outcome plain = run_plain(script);
    const Outcome planned = run_planned(script, budget, path, {{"REPRISE_SAFETY", safety}});
    EXPECT_EQ(planned.output, plain.output) << planned.err;
    EXPECT_LE(planned.peak_bytes, budget);
    EXPECT_GE(planned_iterations(planned), 9u) << planned.err << planned.run_log;
    EXPECT_GT(plan_.offload_bytes, 0u) << "nothing has to move: the test tests nothing";
    std::vector<uint64_t> numbers;
    uint64_t moved = 0;
    for (const std::string& text : lines_of_kind(planned.run_log, "iteration")) {
      if (text.find("planned") == std::string::npos) continue;
      numbers.push_back(number_in(text, key));
      moved += number_in(text, "reload_bytes");
    }
    EXPECT_GT(moved, 0u);
    return numbers;
  }

  plan::Plan plan_;
};

TEST_P(PlannedTest, GivesTheSameBytesWithinTheBudgetWithoutMappingWhenTrusted) {
  const std::vector<uint64_t> calls = numbers_of_iterations("trusted", "vmm_calls");
  if (plan_.remap_count != 0) return;
  EXPECT_EQ(calls, std::vector<uint64_t>(calls.size(), 0));
}

// A range that leaves is unmapped by one call; one that comes costs a call a chunk and one more.
TEST_P(PlannedTest, StrictSafetyMapsWhatMovesAndNothingElse) {
  const std::vector<uint64_t> calls = numbers_of_iterations("strict", "vmm_calls");
  uint64_t most = 0;
  for (const plan::Vertex& vertex : plan_.vertices) {
    if (vertex.kind == plan::VertexKind::offload) most += 1;
    if (vertex.kind == plan::VertexKind::reload) most += plan_.tensors[vertex.tensor].chunk_count + 1;
    // A tensor that an op brings in may have had to be unmapped before, and is mapped then.
    for (const plan::Acquire& acquire : vertex.acquires) {
      if (vertex.kind == plan::VertexKind::op) most += plan_.tensors[acquire.tensor].chunk_count + 2;
    }
  }
  // The window's chunks are mapped when they are first used.
  for (size_t i = 2; i < calls.size(); ++i) {
    EXPECT_GT(calls[i], 0u);
    EXPECT_LE(calls[i], most);
  }
}

INSTANTIATE_TEST_SUITE_P(Frees, PlannedTest, testing::Values(false, true),
                         [](const auto& ordered) { return ordered.param ? "stream_ordered" : "synchronous"; });

// Budgets down to the smallest that has a plan: where no home can be found, ranges are mapped again as they come in.
TEST(PlannedBudgetTest, EveryFeasibleBudgetGivesTheSameBytes) {
  const Training training;
  const std::string script = training.script(8);
  const Outcome plain = run_plain(script);
  plan::Plan plan;
  make_plan_file(training.script(6), 40 * kChunk, &plan);
  uint64_t remapping = 0;
  for (uint64_t budget = plan.minimum_bytes; budget <= 34 * kChunk; budget += 2 * kChunk) {
    const std::string path = make_plan_file(training.script(6), budget, &plan);
    if (plan.remap_count > 0) ++remapping;
    const Outcome planned = run_planned(script, budget, path);
    EXPECT_EQ(planned.output, plain.output) << budget << " remaps " << plan.remap_count << " " << planned.err;
    if (planned.output != plain.output) return;
    EXPECT_LE(planned.peak_bytes, budget);
    EXPECT_GE(planned_iterations(planned), 5u) << budget << planned.err << planned.run_log.substr(0, 2000);
  }
  RecordProperty("plans_with_remaps", static_cast<int>(remapping));
}

// The program does something else at one call of one iteration, at every possible place.
TEST(DivergenceTest, AtEveryCallIsHarmless) {
  Training training;
  training.layers = 4;
  const uint64_t budget = 24 * kChunk;
  plan::Plan plan;
  const std::string path = make_plan_file(training.script(5), budget, &plan);
  const std::vector<std::string> calls = training.iteration();
  std::string whole;
  for (const std::string& call : calls) whole += call;
  for (size_t at = 0; at <= calls.size(); ++at) {
    std::string script = training.begin() + "loop 3\n" + whole + "end\n";
    for (size_t i = 0; i < calls.size(); ++i) {
      if (i == at) script += "kernel 0 three w0 m1 x\nalloc extra 300000\nkernel 0 two extra w1\nfree extra\n";
      script += calls[i];
    }
    if (at == calls.size()) script += "d2h 0 w0 pageable sync\n";
    script += "loop 3\n" + whole + "end\n";
    const Outcome plain = run_plain(script);
    const Outcome planned = run_planned(script, budget, path);
    EXPECT_EQ(planned.output, plain.output) << "differs at call " << at << "\n" << planned.err;
    EXPECT_EQ(planned.exit_code, 0) << at;
    EXPECT_LE(planned.peak_bytes, budget) << at;
    EXPECT_GE(planned_iterations(planned), 3u) << at << planned.run_log;
  }
}

TEST(DivergenceTest, AnEarlyEndIsHarmless) {
  Training training;
  training.layers = 4;
  const uint64_t budget = 24 * kChunk;
  plan::Plan plan;
  const std::string path = make_plan_file(training.script(5), budget, &plan);
  const std::vector<std::string> calls = training.iteration();
  for (size_t count = 0; count < calls.size(); count += 3) {
    std::string script = training.script(4);
    for (size_t i = 0; i < count; ++i) script += calls[i];
    const Outcome plain = run_plain(script);
    const Outcome planned = run_planned(script, budget, path);
    EXPECT_EQ(planned.output, plain.output) << "ends after " << count;
    EXPECT_EQ(planned.exit_code, 0);
  }
}

struct Fault {
  const char* function;
  int nth;
};
class PlannedFaultTest : public testing::TestWithParam<Fault> {};

std::string inject(const std::string& function, int nth, CUresult result = CUDA_ERROR_OUT_OF_MEMORY) {
  return "inject " + function + " " + std::to_string(nth) + " " + std::to_string(result) + "\n";
}

// The input is made on the device: which copy is the nth depends on how far ahead the replay is, so none of them may be
// the program's own: if that failed, the program would be told, and its bytes would differ.
TEST_P(PlannedFaultTest, LosesNoBytes) {
  Training training;
  training.layers = 4;
  training.input = Training::Input::device;
  const uint64_t budget = 24 * kChunk;
  plan::Plan plan;
  const std::string path = make_plan_file(training.script(5), budget, &plan);
  std::string whole;
  for (const std::string& call : training.iteration()) whole += call;
  const std::string before = training.script(4);
  const std::string after = "loop 3\n" + whole + "end\n";
  const Outcome plain = run_plain(before + after);
  const Outcome planned = well(run_planned(before + inject(GetParam().function, GetParam().nth) + after, budget, path));
  EXPECT_GE(planned_iterations(planned), 2u);
  // Either the fault changed nothing, or the program was told by an error code.
  if (planned.output != plain.output) {
    EXPECT_TRUE(has(planned.output, "error")) << planned.err;
  }
  // A transfer of the replay that fails costs the program nothing: the replay tries again on demand.
  if (std::string(GetParam().function).find("Async") != std::string::npos) {
    EXPECT_EQ(planned.output, plain.output) << planned.err << planned.run_log;
    const std::string fault = std::string("now ") + GetParam().function + "@" + std::to_string(GetParam().nth) + "=";
    EXPECT_TRUE(has(planned.err, fault)) << "no transfer failed: the test tests nothing";
    // None where it was the move of a page that was not wanted at once: another page goes in its place.
    EXPECT_LE(lines_of_kind(planned.run_log, "divergence").size(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, PlannedFaultTest,
    testing::Values(Fault{"cuMemcpyDtoHAsync_v2", 1}, Fault{"cuMemcpyDtoHAsync_v2", 4},
                    Fault{"cuMemcpyHtoDAsync_v2", 2}, Fault{"cuMemcpyHtoDAsync_v2", 5}, Fault{"cuEventRecord", 3},
                    Fault{"cuStreamWaitEvent", 1}, Fault{"cuStreamWaitEvent", 2}, Fault{"cuStreamWaitEvent", 3},
                    Fault{"cuStreamWaitEvent", 5}, Fault{"cuStreamWaitEvent", 8}, Fault{"cuLaunchKernel", 3}),
    [](const auto& fault) { return std::string(fault.param.function) + "_" + std::to_string(fault.param.nth); });

// A copy of the program's own fails: told as the driver tells it, and the bytes are those that the driver leaves.
TEST(PlannedOwnFaultTest, OfASynchronousCopyIsAnsweredAsByTheDriver) {
  Training training;
  training.layers = 4;
  training.input = Training::Input::pinned;
  const uint64_t budget = 24 * kChunk;
  plan::Plan plan;
  const std::string path = make_plan_file(training.script(5), budget, &plan);
  const std::string whole = training.script(3).substr(training.begin().size());
  const std::string unharmed = run_plain(training.script(4) + whole).output;
  for (int nth = 1; nth <= 3; ++nth) {
    const std::string script = training.script(4) + inject("cuMemcpyHtoD_v2", nth) + whole;
    const Outcome plain = run_plain(script);
    const Outcome planned = run_planned(script, budget, path);
    EXPECT_NE(plain.output, unharmed) << "nothing fails: the test tests nothing";
    EXPECT_EQ(planned.output, plain.output) << nth << planned.err;
    EXPECT_GE(planned_iterations(planned), 2u) << nth << planned.run_log;
  }
}

// The replay has its own copy of a pageable source and issues it later, with the function that it reloads with. Once
// it had the time to reload what it can, the next copy is the program's; a busy machine may need longer. The copy's
// call has answered SUCCESS, so the copy is lost, and every later call says so: unless memory is short, when it is
// issued again.
TEST(PlannedOwnFaultTest, OfADeferredCopyIsToldByEveryLaterCall) {
  Training training;
  training.layers = 4;
  const uint64_t budget = 24 * kChunk;
  plan::Plan plan;
  std::vector<std::string> calls = training.iteration();
  calls.insert(calls.begin() + 1, "ssync 0\n");  // here the program is told, before the error can stop another call
  std::string whole;
  for (const std::string& call : calls) whole += call;
  const auto loop = [&](int times) { return "loop " + std::to_string(times) + "\n" + whole + "end\n"; };
  const std::string path = make_plan_file(training.begin() + loop(5), budget, &plan);
  const std::string before = training.begin() + loop(4);
  const std::string failing = inject("cuMemcpyHtoDAsync_v2", 1, CUDA_ERROR_NOT_SUPPORTED) + loop(3);
  const std::string unharmed = run_plain(before + loop(3)).output;
  bool seen = false;
  for (int wait_ms = 50; wait_ms <= 3200 && !seen; wait_ms *= 2) {
    std::string script = before;
    script.append("sleep ").append(std::to_string(wait_ms)).append("\n").append(failing);
    const Outcome planned = run_planned(script, budget, path);
    seen = planned.output.rfind("ssync: error 719\n", 0) == 0;
    if (seen) {
      EXPECT_TRUE(has(planned.output, "\nend: error 719\n"));
      EXPECT_TRUE(has_cause(planned.err, Cause::work_not_done, {{"error", "801"}}));
    } else {
      EXPECT_EQ(planned.output, unharmed) << planned.err;
    }
    EXPECT_GE(planned_iterations(planned), 2u) << planned.run_log;
  }
  EXPECT_TRUE(seen) << "the program's own copy never was the next one";
}

// Small tensors may lie in more chunks than when the plan was made, as where an exception has ended an iteration, and
// lie in fewer again some iterations later.
TEST(PlanTest, OneThatHadNoRoomForLongIsFollowedWhenItHas) {
  const Training training;
  const uint64_t budget = 36 * kChunk;
  const std::string begin = training.begin() + Training::small_ones(true);
  plan::Plan plan;
  const std::string path = make_plan_file(begin + training.loop(5), budget, &plan);
  const std::string script = begin + training.loop(3) + Training::free_small_ones() + Training::small_ones(false) +
                             training.loop(5) + Training::free_small_ones() + Training::small_ones(true) +
                             training.loop(10);
  const Outcome planned = run_planned(script, budget, path);
  EXPECT_EQ(planned.output, run_plain(script).output);
  EXPECT_GE(planned_iterations(planned), 2u + 5) << planned.err;
  EXPECT_LE(planned_iterations(planned), 3u + 10) << "the plan had room all the time: the test shows nothing";
}

TEST(PlanTest, OneThatIsDamagedIsRefusedAndTheProgramRunsAllTheSame) {
  const Training training;
  const std::string path = scratch_file("damaged");
  FILE* const file = std::fopen(path.c_str(), "w");
  std::fputs("this is no plan", file);
  std::fclose(file);
  const std::string script = training.script(3);
  const Outcome planned = run_planned(script, 40 * kChunk, path);
  EXPECT_EQ(planned.output, run_plain(script).output);
  EXPECT_TRUE(has_cause(planned.err, Cause::on_demand));
}

}  // namespace
}  // namespace reprise::replay
