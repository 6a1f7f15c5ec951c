#include "tests/property/random_program.h"

#include <rapidcheck.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"

namespace reprise::analyzer::testing {
namespace {

// What happens in an iteration, decided once so that every iteration is the same.
struct Step {
  enum What { allocate, free, launch, copy_in, copy_out, wait } what = launch;
  size_t slot = 0;  // of allocate and free: transient tensor
  uint64_t size = 0;
  struct Operand {
    bool persistent = false;
    size_t slot = 0;
    uint32_t mode = 3;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  std::vector<Operand> operands;
  uint64_t duration = 0;
  uint16_t flags = 0;
  uint32_t stream = 0;
};

class Generator {
 public:
  explicit Generator(const ProgramShape& shape) : shape_(shape), random_(shape.seed) {}

  trace::Trace run() {
    for (int i = 0; i < shape_.persistent; ++i) persistent_.push_back(any_size());
    for (int i = 0; i < shape_.ops; ++i) add_op();
    while (!alive_.empty()) free_one();
    return emit();
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }

  uint64_t any_size() {
    if (shape_.small && chance(25)) return 1 + below(kChunk / 2 - 1);
    const uint64_t chunks = 1 + below(static_cast<uint64_t>(shape_.largest));
    const uint64_t missing = chance(50) ? 0 : below(kChunk / 2);
    return chunks * kChunk - missing;
  }

  void add_op() {
    while (chance(45)) {
      Step step;
      step.what = Step::allocate;
      step.slot = transient_.size();
      step.size = any_size();
      transient_.push_back(step.size);
      alive_.push_back(step.slot);
      steps_.push_back(step);
    }
    Step step;
    const size_t count = below(4);
    for (size_t i = 0; i < count; ++i) add_operand(step);
    step.duration = chance(90) ? 10'000 + below(500'000) : 0;
    if (shape_.opaque && chance(6)) step.flags = trace::kOpOpaque;
    if (chance(12) && step.operands.size() == 1) step.what = chance(50) ? Step::copy_in : Step::copy_out;
    if (step.what == Step::copy_in) step.operands[0].mode = trace::kAccessWrite;
    if (step.what == Step::copy_out) step.operands[0].mode = trace::kAccessRead;
    step.stream = shape_.streams > 1 ? static_cast<uint32_t>(below(shape_.streams)) : 0;
    steps_.push_back(step);
    if (chance(5)) steps_.push_back({Step::wait, 0, 0, {}, 0, 0, 0});
    while (!alive_.empty() && chance(35)) free_one();
  }

  void add_operand(Step& step) {
    Step::Operand operand;
    operand.persistent = alive_.empty() || (!persistent_.empty() && chance(50));
    if (operand.persistent && persistent_.empty()) return;
    operand.slot = operand.persistent ? below(persistent_.size()) : alive_[below(alive_.size())];
    if (shape_.read_only && chance(50)) operand.mode = chance(60) ? trace::kAccessRead : trace::kAccessWrite;
    const uint64_t size = operand.persistent ? persistent_[operand.slot] : transient_[operand.slot];
    const uint64_t chunks = size / kChunk;
    if (shape_.views && chunks >= 2 && chance(35)) {  // whole chunks, so that the interpreter can follow
      operand.offset = below(chunks) * kChunk;
      operand.size = (1 + below(chunks - operand.offset / kChunk)) * kChunk;
    }
    step.operands.push_back(operand);
  }

  void free_one() {
    const size_t at = below(alive_.size());
    Step step;
    step.what = Step::free;
    step.slot = alive_[at];
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
    steps_.push_back(step);
  }

  trace::Trace emit() {
    TraceBuilder program;
    std::vector<uint64_t> persistent;
    for (const uint64_t size : persistent_) persistent.push_back(program.allocate(size));
    program.launch("prologue", {});
    std::vector<uint64_t> transient(transient_.size(), 0);
    for (int iteration = 0; iteration < shape_.iterations; ++iteration) {
      for (size_t i = 0; i < steps_.size(); ++i) emit(program, steps_[i], i, persistent, transient);
    }
    return program.trace();
  }

  static void emit(TraceBuilder& program, const Step& step, size_t index, const std::vector<uint64_t>& persistent,
                   std::vector<uint64_t>& transient) {
    std::vector<Use> uses;
    for (const Step::Operand& o : step.operands) {
      uses.push_back({o.persistent ? persistent[o.slot] : transient[o.slot], o.mode, o.offset, o.size});
    }
    if (step.what != Step::wait) program.use_stream(step.stream);
    switch (step.what) {
      case Step::allocate:
        transient[step.slot] = program.allocate(step.size);
        break;
      case Step::free:
        program.free(transient[step.slot]);
        break;
      case Step::wait:
        program.synchronize();
        break;
      case Step::launch:
        program.op(trace::OpKind::launch, "op" + std::to_string(index), uses, step.duration, step.flags, 0);
        break;
      case Step::copy_in:
        program.op(trace::OpKind::copy_host_to_device, "", uses, step.duration, step.flags, index);
        break;
      case Step::copy_out:
        program.op(trace::OpKind::copy_device_to_host, "", uses, step.duration, step.flags, index);
        break;
    }
  }

  ProgramShape shape_;
  std::mt19937 random_;
  std::vector<uint64_t> persistent_;
  std::vector<uint64_t> transient_;
  std::vector<size_t> alive_;
  std::vector<Step> steps_;
};

}  // namespace

ProgramShape any_shape() {
  ProgramShape shape;
  shape.seed = *rc::gen::arbitrary<uint32_t>();
  shape.persistent = *rc::gen::inRange(0, 14);
  shape.ops = *rc::gen::inRange(1, 60);
  shape.largest = *rc::gen::inRange(1, 9);
  shape.views = *rc::gen::arbitrary<bool>();
  shape.read_only = *rc::gen::arbitrary<bool>();
  shape.small = *rc::gen::arbitrary<bool>();
  shape.opaque = *rc::gen::inRange(0, 6) == 0;
  shape.streams = *rc::gen::inRange<uint32_t>(1, 4);
  return shape;
}

trace::Trace random_program(const ProgramShape& shape) { return Generator(shape).run(); }

}  // namespace reprise::analyzer::testing
