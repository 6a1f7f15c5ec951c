// What is said where a program has no iteration.
#include "analyzer/iteration/finder.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

std::string why(const trace::Trace& trace) {
  const CallStream stream = make_call_stream(trace);
  return find_iteration(stream).status().message();
}

// A few equal allocations, or the layers of one step, are no repetition of the program.
TEST(NoIteration, WhyIsSaidOfMostOfTheProgram) {
  TraceBuilder once;
  std::vector<Use> uses;
  for (int i = 0; i < 3; ++i) uses.push_back(updates(once.allocate(kChunk)));
  once.launch("add", uses);
  for (const Use& use : uses) once.free(use.allocation);
  EXPECT_TRUE(has(why(once.trace()), "happens only once"));
  TraceBuilder refused;  // at its first launch, say
  for (int i = 0; i < 3; ++i) refused.allocate(kChunk);
  EXPECT_TRUE(has(why(refused.trace()), "happens only once"));
  TraceBuilder grows;
  for (int step = 0; step < 6; ++step) {
    const uint64_t kept = grows.allocate(kChunk);
    grows.launch("first", {updates(kept)});
    grows.launch("second", {reads(kept)});
  }
  EXPECT_TRUE(has(why(grows.trace()), "memory grows or changes"));
}

// A program that is far ahead of its device: of what repeats, nothing is done yet when the planner is asked.
TEST(NoIteration, WorkThatIsNotDoneYetCountsAsOtherWorkOfItsKindDoes) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(program.allocate(kChunk));
    program.launch("fill", {writes(weights.back())}, 5000);
  }
  for (int step = 0; step < 6; ++step) {
    for (const uint64_t weight : weights) program.launch("update", {updates(weight)}, 0);
    program.launch("sum", {reads(weights[0]), updates(weights[1])}, 0);
  }
  const CallStream stream = make_call_stream(program.trace());
  EXPECT_GT(good(find_iteration(stream, 1)).coverage, 0.8);
}

// A busy host, or another program on the device, keeps a kernel waiting now and then.
TEST(NoIteration, AKernelThatTookLongOnceOutweighsNoLoop) {
  TraceBuilder program;
  const uint64_t weight = program.allocate(kChunk);
  program.launch("update", {updates(weight)}, 5'000'000);
  program.launch("begin", {updates(weight)}, 1000);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 4; ++i) program.launch("update", {updates(weight)}, 1000);
    program.launch("sum", {updates(weight)}, 1000);
  }
  const CallStream stream = make_call_stream(program.trace());
  EXPECT_GT(good(find_iteration(stream)).coverage, 0.8);
}

// Each step frees what it has made in another order, whether sizes tell its tensors apart or not.
TEST(NoIteration, WorkThatRepeatsBetweenOtherFreesIsToldFromWhatHappensOnce) {
  for (const uint64_t larger : {kChunk, uint64_t{0}}) {
    TraceBuilder program;
    for (size_t step = 0; step < 12; ++step) {
      std::vector<uint64_t> made;
      for (uint64_t i = 1; i <= 6; ++i) {
        made.push_back(program.allocate(kChunk + i * larger));
        program.launch("layer", {updates(made.back())});
      }
      for (size_t left = 6; left > 0; --left) {
        const size_t next = (step * step + 3 * step + left) % left;
        program.free(made[next]);
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(next));
      }
    }
    EXPECT_TRUE(has(why(program.trace()), "in another order each time"));
  }
}

}  // namespace
}  // namespace reprise::analyzer
