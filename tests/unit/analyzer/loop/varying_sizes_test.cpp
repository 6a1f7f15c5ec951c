// Programs whose sizes differ from iteration to iteration are planned as one of the largest sizes.
#include "analyzer/loop/varying_sizes.h"

#include <algorithm>
#include <random>

#include "analyzer/planner/planner.h"
#include "preload/trace/names.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

struct Shape {
  int layers = 4;
  int late = 0;            // frees come up to so many launches behind the last use
  bool by_size = false;    // a kernel is chosen by the size
  bool by_offset = false;  // a batch is a slice, at another place each time
};

// A step of `length` pieces forward and backward; every other activation grows with it.
class Model {
 public:
  explicit Model(const Shape& shape) : shape_(shape), random_(static_cast<uint32_t>(shape.layers)) {
    for (int i = 0; i < shape.layers; ++i) weights_.push_back(program_.allocate(kChunk));
    data_ = program_.allocate(64 * kChunk);
  }

  void step(uint64_t length) {
    std::vector<uint64_t> activations{program_.allocate(length * kChunk)};
    const uint64_t at = shape_.by_offset ? random_() % 8 * kChunk : 0;
    program_.launch("batch", {writes(activations[0]), Use{data_, trace::kAccessRead, at, length}}, length * 1000);
    for (size_t i = 0; i < weights_.size(); ++i) {
      activations.push_back(program_.allocate(i % 2 == 0 ? length * kChunk : kChunk));
      const bool other = shape_.by_size && i == 1 && length > 4;
      program_.launch(other ? "forward of large ones" : "forward",
                      {reads(activations[i]), reads(weights_[i]), writes(activations.back())}, length * 1000);
    }
    for (size_t i = weights_.size(); i-- > 0;) {
      program_.launch("backward", {updates(weights_[i]), reads(activations[i]), reads(activations[i + 1])});
      drop(activations[i + 1]);
    }
    program_.launch("update", {updates(weights_[0])});
    drop(activations[0]);
    collect(true);
  }

  const trace::Trace& trace() const { return program_.trace(); }

 private:
  void drop(uint64_t allocation) {
    garbage_.emplace_back(shape_.late == 0 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(shape_.late + 1)),
                          allocation);
    collect(false);
  }
  void collect(bool all) {
    std::erase_if(garbage_, [&](std::pair<int, uint64_t>& one) {
      if (--one.first >= 0 && !all) return false;
      program_.free(one.second);
      return true;
    });
  }

  const Shape shape_;
  std::mt19937 random_;
  TraceBuilder program_;
  std::vector<uint64_t> weights_;
  uint64_t data_ = 0;
  std::vector<std::pair<int, uint64_t>> garbage_;
};

trace::Trace program_of(const Shape& shape, const std::vector<uint64_t>& lengths) {
  Model model(shape);
  for (const uint64_t length : lengths) model.step(length);
  return model.trace();
}

// In the order of the calls that allocate them; frees may stand elsewhere.
std::vector<uint64_t> sizes_of(const TaskGraph& graph) {
  std::vector<uint64_t> sizes;
  for (const plan::Tensor& tensor : graph.tensors) sizes.push_back(tensor.size);
  return sizes;
}

TEST(VaryingSizes, TheIterationIsThatOfTheLargestSizes) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const Shape shape{2 + static_cast<int>(seed % 7), static_cast<int>(seed % 3), seed % 4 == 1, false};
    std::vector<uint64_t> lengths;
    for (uint64_t length = 1; length <= 9; ++length) lengths.push_back(length);
    std::shuffle(lengths.begin(), lengths.end(), random);
    const trace::Trace varied = program_of(shape, lengths);
    if (!Planning(varied, {}).workload().ok()) {
      std::printf("seed %u layers %d late %d by %d\n", seed, shape.layers, shape.late, shape.by_size);
      continue;
    }
    const Workload found = good(Planning(varied, {}).workload());
    ASSERT_TRUE(found.iteration.sizes_vary) << seed;
    const Shape ordered{shape.layers, 0, false, false};
    const trace::Trace largest = program_of(ordered, {9, 9, 9, 9});
    const Workload wanted = good(Planning(largest, {}).workload());
    ASSERT_FALSE(wanted.iteration.sizes_vary);
    ASSERT_EQ(sizes_of(found.graph), sizes_of(wanted.graph)) << seed;
    ASSERT_EQ(found.graph.calls.size(), wanted.graph.calls.size()) << seed;
    ASSERT_EQ(found.graph.compute_ns, wanted.graph.compute_ns) << "as long as the longest";
  }
}

TEST(VaryingSizes, ALaunchIsOfAnyKernelWhereNothingIsKnownOfOne) {
  const trace::Trace trace = program_of({4, 0, true, false}, {3, 7, 2, 6, 5});
  const Workload found = good(Planning(trace, {}).workload());
  uint32_t chosen_by_size = 0;
  for (const GraphCall& entry : found.graph.calls) {
    EXPECT_NE(entry.call.flags & plan::kCallAnySize, 0);
    if (entry.call.op != trace::OpKind::launch || entry.call.kind != plan::CallKind::op) continue;
    const bool any = (entry.call.flags & plan::kCallAnyKernel) != 0;
    if (entry.call.name == trace::name_of(trace::OpKind::launch)) {
      ++chosen_by_size;
      EXPECT_TRUE(any);
    }
    const bool only_reads = !plan::writes(entry.call.accesses[0]);
    EXPECT_FALSE(any && only_reads) << "what one kernel only reads another one may write";
  }
  EXPECT_EQ(chosen_by_size, 1u);
}

TEST(VaryingSizes, ASliceOfAnotherSizeMoves) {
  const trace::Trace trace = program_of({4, 0, false, true}, {3, 7, 2, 6, 5});
  const Workload found = good(Planning(trace, {}).workload());
  uint32_t moves = 0;
  for (const GraphCall& entry : found.graph.calls) {
    moves += static_cast<uint32_t>(std::count_if(entry.call.accesses.begin(), entry.call.accesses.end(), plan::moves));
  }
  EXPECT_EQ(moves, 1u);
}

// A chain of layers that are launched alike is no loop.
TEST(VaryingSizes, OtherKernelsAreOtherWork) {
  TraceBuilder program;
  const uint64_t tensors[] = {program.allocate(4 * kChunk), program.allocate(8 * kChunk)};
  for (size_t i = 0; i < 40; ++i) program.launch("layer" + std::to_string(i), {updates(tensors[i % 2])});
  EXPECT_FALSE(Planning(program.trace(), {}).workload().ok());
}

// Two sizes in turn are an iteration of two steps as well, once it was seen twice.
TEST(VaryingSizes, WhatRepeatsAsItIsIsPlannedAsItIs) {
  const trace::Trace trace = program_of({}, {3, 7, 3, 7, 3, 7, 3, 7});
  EXPECT_FALSE(good(Planning(trace, {}).workload()).iteration.sizes_vary);
}

}  // namespace
}  // namespace reprise::analyzer
