// What counts as an iteration, and what does not.
#include "analyzer/iteration/finder.h"
#include "analyzer/iteration/loop_calls.h"
#include "analyzer/iteration/stretch.h"
#include "analyzer/taskgraph/graph.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/analyzer/iteration/found.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

TEST(Iteration, EqualLayersAreNotIterations) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 24; ++i) weights.push_back(program.allocate(kChunk));
  const uint64_t x = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    for (const uint64_t w : weights) program.launch("layer", {reads(w), updates(x)});
  }
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 24u);
  EXPECT_EQ(iteration.occurrences, 3u);
}

// Batches are slices of what stays on the device; the one of step 2 is that of step 1 again. What moved in any of the
// recorded steps moves in the plan, and may be written in any part.
TEST(Iteration, PartsOfTensorsMayMove) {
  TraceBuilder program;
  const uint64_t data = program.allocate(8 * kChunk), batch = program.allocate(4 * kChunk);
  for (const uint64_t step : std::vector<uint64_t>{0, 1, 1, 2}) {
    program.launch("take",
                   {{data, trace::kAccessRead, step * kChunk, 0}, {batch, trace::kAccessWrite, kChunk, kChunk}});
    program.launch("put", {reads(batch), {data, trace::kAccessWrite, step * kChunk, kChunk}});
  }
  const CallStream stream = make_call_stream(program.trace());
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 2u);
  EXPECT_TRUE(iteration.parts_move);
  const TaskGraph graph = build_task_graph(stream, iteration, kChunk, {}, plan::Safety::trusted).value();
  const plan::OpAccess& taken = graph.calls[0].call.accesses[0];
  EXPECT_TRUE(moves(taken));
  EXPECT_EQ(taken.offset, 0u);
  EXPECT_EQ(taken.size, 0u);
  EXPECT_FALSE(writes(taken));
  const plan::OpAccess& into = graph.calls[0].call.accesses[1];
  EXPECT_FALSE(moves(into));
  EXPECT_EQ(into.offset, kChunk);
  const plan::OpAccess& put = graph.calls[1].call.accesses[1];
  EXPECT_TRUE(moves(put) && reads(put) && writes(put));
}

// Where a whole step repeats, its layers, in one block of weights, are no iterations.
TEST(Iteration, PartsOfOneBlockAreNoIterations) {
  TraceBuilder program;
  const uint64_t weights = program.allocate(8 * kChunk), x = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    for (uint64_t i = 0; i < 8; ++i)
      program.launch("layer", {{weights, trace::kAccessRead, i * kChunk, 0}, updates(x)});
  }
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 8u);
  EXPECT_FALSE(iteration.parts_move);
}

// The same weights in every time step, and what each step keeps is freed on the way back.
TEST(Iteration, TimeStepsThatPileUpMemoryAreNotIterations) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    std::vector<uint64_t> states;
    for (int t = 0; t < 10; ++t) {
      states.push_back(program.allocate(kChunk));
      program.launch("forward", {reads(w), writes(states.back())});
    }
    while (!states.empty()) {
      program.launch("backward", {updates(w), reads(states.back())});
      program.free(states.back());
      states.pop_back();
    }
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 40u);
}

TEST(Iteration, PrologueOtherPhasesAndAnIncompleteTailAreTolerated) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 7; ++i) program.launch("setup" + std::to_string(i), {updates(w)});
  const auto train = [&](int ops) {
    const uint64_t a = program.allocate(2 * kChunk);
    for (int i = 0; i < ops; ++i) program.launch("train" + std::to_string(i), {updates(w), updates(a)});
    if (ops == 6) program.free(a);
  };
  for (int i = 0; i < 3; ++i) train(6);
  for (int i = 0; i < 3; ++i) program.launch("evaluate", {reads(w)});
  for (int i = 0; i < 3; ++i) train(6);
  train(4);
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 8u);
  EXPECT_EQ(iteration.occurrences, 6u);
  EXPECT_LT(iteration.coverage, 1.0);
}

TEST(Iteration, ALoopOfWhatTakesNoTimeIsOne) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  program.launch("setup", {updates(w)}, 5'000);
  for (int i = 0; i < 3; ++i) {
    program.launch("first", {updates(w)}, 0);
    program.launch("second", {updates(w)}, 0);
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 2u);
}

// The op at `index` is missing, as after a buffer that was full.
void lose(trace::Trace* trace, size_t index) {
  const auto& events = trace->events;
  trace::GapRecord gap{};
  gap.after_sequence = index == 0 ? 0 : trace::sequence_of(events[index - 1]);
  gap.header.sequence = index + 1 < events.size() ? trace::sequence_of(events[index + 1]) : UINT64_MAX;
  gap.records = 1;
  trace->gaps.push_back(gap);
  trace->events.erase(trace->events.begin() + static_cast<std::ptrdiff_t>(index));
}

trace::Trace five_steps() {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 5; ++i) program.launch("op" + std::to_string(i), {updates(w)});
  }
  return program.trace();
}

TEST(Iteration, IsWhereNoRecordIsMissing) {
  const size_t count = five_steps().events.size();
  for (size_t lost = 1; lost < count; ++lost) {
    trace::Trace trace = five_steps();
    lose(&trace, lost);
    const Result<Iteration> iteration = find(trace);
    ASSERT_TRUE(iteration.ok()) << lost << ": " << iteration.status().message();
    EXPECT_EQ(iteration.value().call_count, 5u) << lost;
    const CallStream stream = make_call_stream(trace);
    ASSERT_FALSE(stream.incomplete.empty() && lost + 1 < count) << lost;
    for (const uint32_t call : stream.incomplete) {
      const uint32_t first = iteration.value().first_call - 5;
      EXPECT_FALSE(call > first && call < first + 10) << lost;
    }
  }
}

// An op that is missing each time makes no shorter iteration.
TEST(Iteration, IsNotMadeOfWhatIsLeftWhenRecordsAreMissingEverywhere) {
  trace::Trace trace = five_steps();
  for (const size_t lost : {23u, 18u, 13u, 8u, 3u}) lose(&trace, lost);
  const Result<Iteration> iteration = find(trace);
  ASSERT_FALSE(iteration.ok());
  EXPECT_TRUE(has(iteration.status().message(), "5 records are missing in 5 places"));
}

TEST(Iteration, GradientAccumulationIsOneIteration) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk), g = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    for (int micro = 0; micro < 4; ++micro) {
      program.launch("forward", {reads(w)});
      program.launch("backward", {updates(g), reads(w)});
    }
    for (int i = 0; i < 3; ++i) program.launch("update", {updates(w), updates(g)});
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 11u);
}

TEST(Iteration, OneIsNotEnough) {
  const Result<Iteration> iteration = find(train_chain(4, kChunk, 1));
  ASSERT_FALSE(iteration.ok());
  EXPECT_EQ(iteration.status().code(), StatusCode::not_found);
  EXPECT_TRUE(has(iteration.status().message(), "at least three equal iterations"));
  EXPECT_FALSE(find(TraceBuilder().trace()).ok());
}

// "loss = model(batch)": the new loss is there before the old one goes, so two of them take turns.
TEST(Iteration, ATensorMayTakeOverFromItsPredecessor) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  uint64_t loss = 0;
  for (int step = 0; step < 9; ++step) {
    const uint64_t a = program.allocate(2 * kChunk);
    program.launch("forward", {reads(w), writes(a)});
    const uint64_t next = program.allocate(kChunk);
    program.launch("loss", {reads(a), writes(next)});
    if (loss != 0) program.free(loss);
    loss = next;
    program.launch("backward", {updates(w), reads(a), reads(loss)});
    program.free(a);
  }
  const trace::Trace& trace = program.trace();
  const auto iteration = good(find(trace));
  EXPECT_EQ(iteration.call_count, 14u);
  const CallStream stream = make_call_stream(trace);
  const auto graph = good(build_task_graph(stream, iteration, kChunk, Machine{}));
  // The weight and the loss that is there at the start; of the two in between one is an ordinary transient tensor.
  int persistent = 0, handovers = 0;
  for (const plan::Tensor& tensor : graph.tensors) persistent += is_persistent(tensor) ? 1 : 0;
  for (const GraphCall& call : graph.calls) handovers += call.call.kind == plan::CallKind::allocate_handover ? 1 : 0;
  EXPECT_EQ(persistent, 2);
  EXPECT_EQ(handovers, 1);
  EXPECT_EQ(graph.peak_bytes, 5 * kChunk);
}

// A step whose loss is handed over: two of them take turns.
void train_with_loss(TraceBuilder& program, uint64_t w, uint64_t* loss, uint64_t duration_ns) {
  const uint64_t a = program.allocate(2 * kChunk);
  program.launch("forward", {reads(w), writes(a)}, duration_ns);
  const uint64_t next = program.allocate(kChunk);
  program.launch("loss", {reads(a), writes(next)}, duration_ns);
  if (*loss != 0) program.free(*loss);
  *loss = next;
  program.launch("backward", {updates(w), reads(a), reads(*loss)}, duration_ns);
  program.free(a);
}

// Which loop is the iteration is a matter of the device's time, not of whether its tensors are handed over.
TEST(Iteration, ALoopOfSetUpWorkIsNotTheIteration) {
  for (const int turns : {3, 20, 500}) {
    for (const bool behind : {false, true}) {
      TraceBuilder program;
      const uint64_t w = program.allocate(kChunk);
      uint64_t loss = 0;
      const auto setup = [&] {
        for (int i = 0; i < turns; ++i) program.launch("fill", {updates(w)}, 100);
      };
      if (!behind) setup();
      for (int step = 0; step < 6; ++step) train_with_loss(program, w, &loss, 1'000'000);
      if (behind) setup();
      const auto iteration = good(find(program.trace()));
      EXPECT_EQ(iteration.call_count, 14u) << turns;
      EXPECT_TRUE(iteration.timed);
      EXPECT_GT(iteration.coverage, 0.6);
      EXPECT_TRUE(has(covered(iteration), " % of the recorded device time"));
    }
  }
}

// Without times, calls are counted.
TEST(Iteration, CallsCountWhereNoTimesWereRecorded) {
  for (const int turns : {4, 100}) {
    TraceBuilder program;
    const uint64_t w = program.allocate(kChunk);
    uint64_t loss = 0;
    for (int i = 0; i < turns; ++i) program.launch("fill", {updates(w)}, 0);
    for (int step = 0; step < 6; ++step) train_with_loss(program, w, &loss, 0);
    const auto iteration = good(find(program.trace()));
    EXPECT_FALSE(iteration.timed);
    EXPECT_EQ(iteration.call_count, turns == 4 ? 14u : 1u);
  }
}

// An op whose time was not recorded takes as long as others of its kind.
TEST(Iteration, TimesThatAreMissingAreThoseOfTheSameKernel) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 40; ++i) program.launch("fill", {updates(w)}, 10'000);
  for (int step = 0; step < 9; ++step) {
    program.launch("first", {updates(w)}, step == 0 ? 100'000 : 0);
    program.launch("second", {updates(w)}, step == 0 ? 100'000 : 0);
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 2u);
}

// Where two tensors take turns, the iteration is two steps, and three that are equal are enough. The first
// is another, since it makes what the optimizer keeps, and so is the second, which frees what the first one has left.
TEST(Iteration, ThreeEqualStepsAreEnoughWhereTwoTakeTurns) {
  for (const int layers : {1, 3, 8, 13}) {
    TraceBuilder program;
    std::vector<uint64_t> weights, states;
    for (int i = 0; i < layers; ++i) weights.push_back(program.allocate(kChunk));
    uint64_t loss = 0;
    int steps = 0;
    const auto step = [&] {
      for (const uint64_t w : weights) program.launch("forward", {reads(w)});
      const uint64_t next = program.allocate(kChunk);
      program.launch("loss", {writes(next)});
      if (loss != 0) program.free(loss);
      loss = next;
      const bool first = states.empty();
      for (size_t i = 0; i < weights.size(); ++i) {
        if (first) states.push_back(program.allocate(kChunk));
        program.launch("update", {updates(weights[i]), updates(states[i])});
      }
      ++steps;
    };
    Result<Iteration> found = Status{StatusCode::not_found, ""};
    while (!found.ok() && steps < 20) {
      step();
      found = find(program.trace());
    }
    EXPECT_LE(steps, 5) << layers;
    EXPECT_EQ(found.value().call_count, 2u * static_cast<uint32_t>(3 + 2 * layers));
    const trace::Trace& trace = program.trace();
    const CallStream stream = make_call_stream(trace);
    const auto graph = good(build_task_graph(stream, found.value(), kChunk, Machine{}));
    int persistent = 0;
    for (const plan::Tensor& tensor : graph.tensors) persistent += is_persistent(tensor) ? 1 : 0;
    EXPECT_EQ(persistent, 2 * layers + 1);
  }
}

TEST(Iteration, GrowingMemoryIsNamed) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 20; ++i) {
    const uint64_t kept = program.allocate(kChunk);
    program.launch("step", {reads(w), writes(kept)});
  }
  const Result<Iteration> iteration = find(program.trace());
  ASSERT_FALSE(iteration.ok());
  EXPECT_TRUE(has(iteration.status().message(), "grows"));
}

TEST(Iteration, MarksWin) {
  const auto found = [](const char* mark) {
    TraceBuilder program;
    const uint64_t w = program.allocate(kChunk);
    for (int i = 0; i < 3; ++i) {
      program.mark(mark);
      for (int j = 0; j < 4; ++j) program.launch("step", {updates(w)});
    }
    program.mark(mark);
    return good(find(program.trace()));
  };
  const Iteration marked = found("iteration");
  EXPECT_TRUE(marked.marked);
  EXPECT_EQ(marked.call_count, 4u);
  EXPECT_EQ(marked.occurrences, 3u);
  EXPECT_EQ(found("another name").call_count, 1u);
}

TEST(Iteration, RangesCountWhereTheyBegin) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.mark("iteration", 1);
    for (int j = 0; j < 4; ++j) program.launch("step", {updates(w)});
    program.mark("iteration", 0);
    program.launch("between", {updates(w)});
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 5u);
}

TEST(Iteration, MarkedIterationsThatDifferAreRefused) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.mark("iteration");
    for (int j = 0; j <= i; ++j) program.launch("step", {updates(w)});
  }
  const Result<Iteration> iteration = find(program.trace());
  ASSERT_FALSE(iteration.ok());
  EXPECT_TRUE(has(iteration.status().message(), "number of calls"));
}

// Which buffer of memory that is never moved an op uses may change from iteration to iteration.
TEST(Iteration, StagingBuffersMayAlternate) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  const uint64_t pinned[] = {program.allocate(kChunk, trace::Origin::host),
                             program.allocate(kChunk, trace::Origin::host)};
  for (int i = 0; i < 6; ++i) {
    program.op(trace::OpKind::copy_host_to_device, "", {reads(pinned[i % 2]), writes(w)}, 1000, 0, kChunk);
    program.launch("step", {updates(w)});
  }
  EXPECT_EQ(good(find(program.trace())).call_count, 2u);
}

TEST(Iteration, FailedOpsAreLeftOut) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.launch("step", {updates(w)});
    if (i == 1) program.op(trace::OpKind::launch, "refused", {updates(w)}, 0, trace::kOpFailed, 0);
    program.launch("other", {updates(w)});
  }
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 2u);
  EXPECT_EQ(iteration.occurrences, 4u);
}

// Evaluations, with iterations of a plan in between, which are not recorded.
TEST(Iteration, MayBeginWhereTheRecordingPaused) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 3; ++i) {
    program.pause(true);
    for (const char* kernel : {"one", "two", "three"}) program.launch(kernel, {updates(w)});
  }
  const auto iteration = good(find(program.trace()));
  EXPECT_EQ(iteration.call_count, 3u);
  EXPECT_EQ(first_op(program.trace(), iteration), "one");
}

TEST(Iteration, KnowsWhatPlansHaveHandedOverMeanwhile) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  uint64_t loss = program.allocate(kChunk, trace::Origin::alloc, 77);
  program.info("memory.managed", "1");
  for (int i = 0; i < 3; ++i) {
    program.pause(true);
    loss = program.hand_over(loss, kChunk, 77);
    program.launch("one", {updates(w), reads(loss)});
    program.launch("two", {updates(w), updates(loss)});
  }
  const CallStream stream = make_call_stream(program.trace());
  EXPECT_EQ(stream.size(), 2u + 3 * 2);
  const auto iteration = good(find_iteration(stream));
  EXPECT_EQ(iteration.call_count, 2u);
  const auto graph = good(build_task_graph(stream, iteration, kChunk, Machine{}));
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_EQ(graph.calls[0].call.accesses.size(), 2u);
  EXPECT_EQ(graph.foreign_count, 1u) << "unknown host memory alone";
}

TEST(Iteration, HasNoPauseInTheMiddle) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 6; ++i) {
    program.pause(true);
    program.launch(i % 2 == 0 ? "evaluate" : "save", {updates(w)});
  }
  EXPECT_FALSE(find(program.trace()).ok()) << "the two do not follow each other";
}

TEST(Iteration, DoesNotReachOverAPauseOfUnknownCalls) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int i = 0; i < 4; ++i) {
    program.pause(false);
    for (const char* kernel : {"one", "two", "three"}) program.launch(kernel, {updates(w)});
  }
  EXPECT_FALSE(find(program.trace()).ok());
}

TEST(Iteration, StretchIgnoresEarlierCalls) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk), gone = program.allocate(2 * kChunk);
  for (int i = 0; i < 20; ++i) program.launch("train", {updates(w), updates(gone)});
  program.free(gone);
  const uint64_t from = program.next_sequence();
  const uint64_t x = program.allocate(3 * kChunk);
  for (int i = 0; i < 3; ++i) {
    program.launch("evaluate", {updates(w), updates(x)});
    program.launch("count", {updates(x)});
  }
  EXPECT_EQ(first_op(program.trace(), find(program.trace()).value()), "train");
  const trace::Trace rest = stretch_from(program.trace(), from);
  EXPECT_EQ(good(find(rest)).call_count, 2u);
  const CallStream stream = make_call_stream(rest);
  EXPECT_EQ(stream.spans.size(), 2u) << "what is alive";
  EXPECT_EQ(stream.live_bytes.back(), 4 * kChunk);
}

TEST(Iteration, HasAsManyCallsAsAreAskedFor) {
  TraceBuilder program;
  const uint64_t w = program.allocate(kChunk);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 50; ++i) program.launch("micro", {updates(w)});
    program.launch("update", {updates(w)}, 1);
  }
  const CallStream stream = make_call_stream(program.trace());
  EXPECT_EQ(find_iteration(stream, 1).value().call_count, 1u) << "the update takes no time";
  EXPECT_EQ(find_iteration(stream, 45).value().call_count, 51u);
}

// The loop that a plan is of is found whatever else covers more, and wherever it is entered.
TEST(Iteration, IsTheOneThatIsAskedFor) {
  for (const int batches : {2, 3, 5}) {
    TraceBuilder program;
    const uint64_t w = program.allocate(kChunk), out = program.allocate(kChunk);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 3; ++i) {
        program.launch("forward", {reads(w)}, 500'000);
        program.launch("backward", {updates(w)}, 500'000);
      }
      for (int i = 0; i < batches; ++i) {
        program.launch("forward", {reads(w)}, 1'000);
        program.launch("evaluate", {reads(w), updates(out)}, 1'000);
      }
    }
    const CallStream stream = make_call_stream(program.trace());
    const auto ask = [&](const std::vector<std::string>& names) {
      LoopCalls loop;
      for (CallIndex call{0}; call < stream.size(); ++call) {
        const trace::Op* const op = stream.op(call);
        for (size_t i = 0; op != nullptr && i < names.size(); ++i) {
          if (program.trace().functions[op->record.function - 1].name == names[i] && loop.count == i) {
            loop.add(op->record.signature);
          }
        }
      }
      return loop;
    };
    ASSERT_TRUE(find(program.trace()).ok());
    for (const std::vector<std::string>& names :
         std::vector<std::vector<std::string>>{{"forward", "evaluate"}, {"forward", "backward"}}) {
      const Result<Iteration> found = find_loop(stream, ask(names));
      ASSERT_TRUE(found.ok()) << names[1] << ": " << found.status().message();
      EXPECT_EQ(found.value().call_count, 2u);
      EXPECT_NE(first_op(program.trace(), found.value()), names[1] == "evaluate" ? "backward" : "evaluate");
    }
    EXPECT_FALSE(find_loop(stream, ask({"evaluate", "backward"})).ok());
  }
}

TEST(Iteration, AnAllocationThatIsRecordedTwiceIsOne) {
  TraceBuilder program;
  program.allocate(kChunk);
  program.repeat_last();
  const CallStream stream = make_call_stream(program.trace());
  EXPECT_EQ(stream.size(), 1u);
  EXPECT_EQ(stream.live_bytes.back(), kChunk);
}

TEST(Iteration, AnotherTensorIsAnotherCall) {
  TraceBuilder program;
  const uint64_t a = program.allocate(kChunk), b = program.allocate(kChunk);
  for (int i = 0; i < 8; ++i) program.launch("step", {updates(i % 2 == 0 ? a : b)});
  EXPECT_EQ(good(find(program.trace())).call_count, 2u);
}

}  // namespace
}  // namespace reprise::analyzer
