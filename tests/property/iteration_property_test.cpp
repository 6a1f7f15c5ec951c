// Random programs with a short loop of set-up work before or behind their main loop: what is found covers at least as
// much of the recorded device time as either loop.
#include <rapidcheck.h>

#include "analyzer/iteration/finder.h"
#include "analyzer/taskgraph/graph.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

struct Program {
  int layers = 2;
  int steps = 6;
  int setup_before = 0;  // turns of a loop of two small kernels
  int setup_behind = 0;
  uint64_t setup_ns = 1'000;  // of each of its kernels
  uint64_t kernel_ns = 50'000;
  bool loss_handed_over = false;
  bool gradients_handed_over = false;
  int optimizer_every = 1;
  bool lazy_state = false;  // the optimizer's state is allocated by its first step
  bool timed = true;
};

uint64_t total_ns(const trace::Trace& trace) {
  uint64_t total = 0;
  for (const auto& [sequence, activity] : trace.activities) total += activity.end_ns - activity.start_ns;
  return total;
}

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {
    for (int i = 0; i < program.layers; ++i) weights_.push_back(trace_.allocate(kChunk));
    scratch_ = trace_.allocate(kChunk);
  }

  trace::Trace write() {
    setup(program_.setup_before);
    const int first = 2 * program_.optimizer_every;
    const int last = program_.steps - program_.optimizer_every;
    for (int step = 0; step < program_.steps; ++step) {
      const uint64_t before = total_ns(trace_.trace());
      train(step);
      if (step >= first && step < last) equal_ns += total_ns(trace_.trace()) - before;
    }
    setup(program_.setup_behind);
    return trace_.trace();
  }
  uint64_t equal_ns = 0;  // of the steps but for the first two and the last, which may be others

 private:
  void launch(const std::string& name, const std::vector<Use>& uses, uint64_t ns) {
    trace_.launch(name, uses, program_.timed ? ns : 0);
  }
  void setup(int turns) {
    for (int i = 0; i < turns; ++i) {
      launch("fill", {writes(scratch_)}, program_.setup_ns);
      launch("scale", {updates(scratch_)}, program_.setup_ns);
    }
  }
  void train(int step) {
    std::vector<uint64_t> kept;
    for (const uint64_t weight : weights_) {
      kept.push_back(trace_.allocate(2 * kChunk));
      launch("forward", {reads(weight), writes(kept.back())}, program_.kernel_ns);
    }
    const uint64_t loss = trace_.allocate(kChunk);
    launch("loss", {reads(kept.back()), writes(loss)}, program_.kernel_ns);
    if (program_.loss_handed_over && loss_ != 0) trace_.free(loss_);
    if (!program_.loss_handed_over) trace_.free(loss);
    loss_ = loss;
    backward(kept);
    if ((step + 1) % program_.optimizer_every == 0) optimize();
    trace_.synchronize();
  }
  void backward(std::vector<uint64_t>& kept) {
    const bool fresh = gradients_.empty();
    for (size_t i = kept.size(); i-- > 0;) {
      if (fresh) gradients_.push_back(trace_.allocate(kChunk));
      const uint64_t gradient = gradients_[kept.size() - 1 - i];
      launch("backward", {reads(weights_[i]), reads(kept[i]), updates(gradient)}, program_.kernel_ns);
      trace_.free(kept[i]);
    }
  }
  void optimize() {
    if (program_.lazy_state && state_.empty()) {
      for (size_t i = 0; i < weights_.size(); ++i) {
        state_.push_back(trace_.allocate(kChunk));
        launch("zero", {writes(state_.back())}, program_.setup_ns);
      }
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      std::vector<Use> uses = {updates(weights_[i]), reads(gradients_[i])};
      if (!state_.empty()) uses.push_back(updates(state_[i]));
      launch("update", uses, program_.kernel_ns);
    }
    if (!program_.gradients_handed_over) return;
    for (const uint64_t gradient : gradients_) trace_.free(gradient);
    gradients_.clear();
  }

  const Program program_;
  TraceBuilder trace_;
  std::vector<uint64_t> weights_, gradients_, state_;
  uint64_t scratch_ = 0;
  uint64_t loss_ = 0;
};

Program any_program() {
  Program program;
  program.layers = *rc::gen::inRange(1, 6);
  program.optimizer_every = *rc::gen::inRange(1, 4);
  program.setup_before = *rc::gen::inRange(0, 60);
  program.setup_behind = *rc::gen::inRange(0, 60);
  program.setup_ns = *rc::gen::inRange<uint64_t>(1, 200'000);
  program.kernel_ns = *rc::gen::inRange<uint64_t>(1'000, 100'000);
  program.loss_handed_over = *rc::gen::arbitrary<bool>();
  program.gradients_handed_over = *rc::gen::arbitrary<bool>();
  program.lazy_state = *rc::gen::arbitrary<bool>();
  program.steps = *rc::gen::inRange(6, 10) * program.optimizer_every;
  return program;
}

TEST(IterationProperty, WhatIsFoundCoversAsMuchAsAnyOtherLoop) {
  EXPECT_TRUE(rc::check("coverage decides", [] {
    const Program program = any_program();
    Writer writer(program);
    const trace::Trace trace = writer.write();
    const CallStream stream = make_call_stream(trace);
    const Result<Iteration> found = find_iteration(stream, 1);
    RC_ASSERT(found.ok());
    const Iteration& iteration = found.value();
    const auto total = static_cast<double>(total_ns(trace));
    // Both loops of set-up work repeat the same.
    const int turns = program.setup_before + program.setup_behind;
    const double setup = turns > 3 ? 2.0 * static_cast<double>(program.setup_ns) * (turns - 2) / total : 0;
    const double main = static_cast<double>(writer.equal_ns) / total;
    RC_ASSERT(iteration.timed);
    RC_ASSERT(iteration.coverage >= std::max(setup, main) * 0.97);
    // It can be made a graph of: every tensor that it uses is known, allocated and freed in pairs.
    const Result<TaskGraph> graph = build_task_graph(stream, iteration, kChunk, Machine{});
    RC_ASSERT(graph.ok());
    for (const plan::Tensor& tensor : graph.value().tensors) {
      RC_ASSERT(is_persistent(tensor) || tensor.free_call < iteration.call_count);
    }
  }));
}

}  // namespace
}  // namespace reprise::analyzer
