// Two numbers among a kernel's parameters that look like an address: seen with cuBLAS and CUTLASS on an H200.
#include "analyzer/iteration/false_operands.h"

#include "analyzer/iteration/finder.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

constexpr uint64_t kSevenAndSix = 0x7'0000'0006;
constexpr uint64_t kPlace = 0x6'ff00'0000;  // 32 MiB from here on hold it

class Program {
 public:
  // `words`: what stands at 0, 8, ... of the parameters, whatever operands they are.
  void launch(const std::string& name, const std::vector<Use>& uses, const std::vector<uint64_t>& words) {
    builder.launch(name, uses);
    auto& op = std::get<trace::Op>(trace().events.back());
    op.parameters.resize(words.size() * 8);
    std::memcpy(op.parameters.data(), words.data(), op.parameters.size());
    op.record.parameter_bytes = static_cast<uint32_t>(op.parameters.size());
  }
  trace::Trace& trace() { return const_cast<trace::Trace&>(builder.trace()); }

  TraceBuilder builder;
};

uint64_t operands(const trace::Trace& trace) {
  uint64_t count = 0;
  for (const trace::Event& event : trace.events) {
    if (const auto* op = std::get_if<trace::Op>(&event)) count += op->accesses.size();
  }
  return count;
}

// The tensor of a step lies now here, now there: at every other one where the numbers seem to point.
Program training(int steps, uint64_t word) {
  Program program;
  const uint64_t w = program.builder.allocate(kChunk, trace::Origin::alloc, uint64_t{1} << 40);
  for (int step = 0; step < steps; ++step) {
    const bool there = step % 2 == 1;
    const uint64_t x =
        program.builder.allocate(16 * kChunk, trace::Origin::alloc, there ? kPlace : kPlace + (uint64_t{1} << 36));
    const std::vector<Use> two = {reads(w), updates(x)}, three = {reads(w), updates(x), {x, 3, word - kPlace, 0}};
    program.launch("gemm", there ? three : two, {uint64_t{1} << 40, kPlace, word});
    program.launch("update", {updates(w)}, {uint64_t{1} << 40});
    program.builder.free(x);
  }
  return program;
}

TEST(FalseOperands, HideAnIterationUntilTheyAreDropped) {
  Program program = training(7, kSevenAndSix);
  const auto calls = [](const trace::Trace& trace) {
    const Result<Iteration> found = find_iteration(make_call_stream(trace));
    return found.ok() ? found.value().call_count : 0;
  };
  EXPECT_NE(calls(program.trace()), 4u);
  const uint64_t before = operands(program.trace());
  EXPECT_EQ(drop_false_operands(&program.trace()), 3u);
  EXPECT_EQ(operands(program.trace()), before - 3);
  EXPECT_EQ(calls(program.trace()), 4u);
  EXPECT_EQ(drop_false_operands(&program.trace()), 0u);
}

TEST(FalseOperands, AreNoneWhereMemoryWasAlwaysThere) {
  Program program;
  const uint64_t x = program.builder.allocate(16 * kChunk, trace::Origin::alloc, kPlace);
  for (int step = 0; step < 4; ++step) program.launch("gemm", {{x, 3, kSevenAndSix - kPlace, 0}}, {kSevenAndSix});
  EXPECT_EQ(drop_false_operands(&program.trace()), 0u);
  EXPECT_EQ(operands(program.trace()), 4u);
}

// A launch of `name` with `word` while a tensor is there that begins at `begin`.
void step(Program& program, const std::string& name, uint64_t begin, uint64_t word) {
  const uint64_t x = program.builder.allocate(16 * kChunk, trace::Origin::alloc, begin);
  const bool there = begin <= word && word < begin + 16 * kChunk;
  const std::vector<Use> uses = there ? std::vector<Use>{{x, 3, word - begin, 0}} : std::vector<Use>{};
  program.launch(name, uses, {word});
  program.builder.free(x);
}

// The inverse of a divisor fills all of the lower half: seen with cuDNN on an H200.
TEST(FalseOperands, AreWhatPointsIntoMemoryThatBeginsElsewhereEachTime) {
  constexpr uint64_t kInverse = 0x6'ff24'924a;
  Program program;
  for (int i = 0; i < 6; ++i) step(program, "convolution", i % 2 == 0 ? kPlace : kPlace + kChunk, kInverse);
  for (int i = 0; i < 6; ++i) step(program, "view", kPlace, kInverse);
  EXPECT_EQ(drop_false_operands(&program.trace()), 6u) << "where it begins at one place it may be a part of a tensor";
}

TEST(FalseOperands, AreOddAddressesThatMostLaunchesHave) {
  Program program;
  for (int i = 0; i < 4; ++i) step(program, "convolution", kPlace, 0x6'ff24'9249);
  for (int i = 0; i < 4; ++i) step(program, "bytes", kPlace, 0x6'ff24'9249 + static_cast<uint64_t>(i));
  EXPECT_EQ(drop_false_operands(&program.trace()), 4u);
}

TEST(FalseOperands, AreWhatPointedNowhereAndNeverToWhereMemoryBegins) {
  Program program = training(7, kPlace + (24u << 20) + (1u << 20));
  EXPECT_EQ(drop_false_operands(&program.trace()), 3u) << "0x700900000: below the largest number";
  program = training(7, kPlace + (5u << 20));
  EXPECT_EQ(drop_false_operands(&program.trace()), 3u) << "0x6ff500000: in all launches";
  program = training(7, kPlace);
  EXPECT_EQ(drop_false_operands(&program.trace()), 0u);
}

// What a kernel leaves of the launch before in a structure that it does not use may have been an address then.
TEST(FalseOperands, AreNoAddressesOfBefore) {
  Program program;
  for (int i = 0; i < 8; ++i) {
    const uint64_t word = kPlace + (5u << 20) + (static_cast<uint64_t>(i) % 4 << 20);
    step(program, "add", i < 4 ? kPlace : kPlace + (uint64_t{1} << 36), word);
  }
  EXPECT_EQ(drop_false_operands(&program.trace()), 0u);
}

// A kernel has other constants in another shape.
TEST(FalseOperands, AreToldByShape) {
  constexpr uint64_t kInverse = 0x6'ff24'924a;
  Program program;
  for (int i = 0; i < 4; ++i) {
    step(program, "convolution", i % 2 == 0 ? kPlace : kPlace + kChunk, kInverse);
    auto& op = std::get<trace::Op>(program.trace().events[program.trace().events.size() - 2]);
    op.record.grid[0] = 7;
    for (uint64_t other = 1; other < 4; ++other) step(program, "convolution", kPlace, kInverse + 2 * other);
  }
  EXPECT_EQ(drop_false_operands(&program.trace()), 4u) << "of the 12 launches of the other shape no word has most";
}

// 20 steps of a training by JAX on an H200, redacted. Its products have 0x4'03c00000 among their parameters.
TEST(FalseOperands, HideNoIterationInARecordingOfAGpu) {
  auto trace = good(trace::read_trace(REPRISE_TEST_DATA "/recordings/jax-h200.trace"));
  EXPECT_FALSE(find_iteration(make_call_stream(trace)).ok());
  EXPECT_GT(drop_false_operands(&trace), 0u);
  EXPECT_EQ(good(find_iteration(make_call_stream(trace))).call_count, 1338u) << "of two steps";
}

// Each launch is signed as the replay signs it, which finds no operand there.
TEST(FalseOperands, LeaveTheSignatureOfALaunchWithoutThem) {
  Program program = training(4, kSevenAndSix);
  drop_false_operands(&program.trace());
  std::vector<uint64_t> signatures;
  for (const trace::Event& event : program.trace().events) {
    const auto* op = std::get_if<trace::Op>(&event);
    if (op != nullptr && op->record.function == 1) signatures.push_back(op->record.signature);
  }
  ASSERT_EQ(signatures.size(), 4u);
  for (const uint64_t signature : signatures) EXPECT_EQ(signature, signatures.front());
}

}  // namespace
}  // namespace reprise::analyzer
