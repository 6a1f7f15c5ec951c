// Instructions whose result may be an address: sums, moves, selections, bits.
#include <algorithm>
#include <array>

#include "analyzer/code/machine.h"

namespace reprise::code {
namespace {

// The sources of one instruction, with their values.
struct Sources {
  std::vector<CodeOperand> operands;  // without predicates and the result
  std::vector<ValueId> values;

  ValueId at(size_t i) const { return i < values.size() ? values[i] : ValueTable::kZero; }
};

class Arithmetic {
 public:
  explicit Arithmetic(const Step& step) : step_(step), machine_(step.machine), values_(step.machine.values) {
    bool first = true;
    for (const CodeOperand& operand : step.instruction.operands) {
      if (operand.is(OperandKind::predicate)) continue;
      if (!first) from_.operands.push_back(operand);
      first = false;
    }
    if (step.instruction.row.effect == Effect::load_constant) return;  // several words of one operand
    for (const CodeOperand& operand : from_.operands) from_.values.push_back(value_of(step, operand));
  }

  void run() {
    if (from_.operands.size() < least_sources()) return step_.doubt("too few operands");
    switch (step_.instruction.row.effect) {
      case Effect::copy:
        return place(step_, std::array{from_.at(0)});
      case Effect::add:
        return place(step_, std::array{carried(sum(from_.values))});
      case Effect::multiply:
        return multiply();
      case Effect::scale:
        return place(step_, std::array{carried(scaled())});
      case Effect::bits:
        return bits();
      case Effect::shift:
        return place(step_, std::array{shifted()});
      case Effect::bytes:
        return place(step_, std::array{bytes()});
      case Effect::choose:
        return choose();
      case Effect::least:
        return place(step_, std::array{in_parts() ? values_.opaque(from_.values) : either(from_.at(0), from_.at(1))});
      case Effect::add_least:
        return place(step_, std::array{in_parts() ? values_.opaque(from_.values)
                                                  : either(values_.add(from_.at(0), from_.at(1)), from_.at(2))});
      case Effect::load_constant:
        return load_constant();
      default:
        step_.doubt("an operation that is not known");
    }
  }

 private:
  bool has(Modifier modifier) const { return step_.instruction.has(modifier); }
  ValueId upper(size_t i) const {
    return i < from_.operands.size() ? value_of(step_, from_.operands[i], 1) : ValueTable::kZero;
  }

  size_t least_sources() const {
    switch (step_.instruction.row.effect) {
      case Effect::copy:
      case Effect::load_constant:
        return 1;
      case Effect::bits:
        return 4;
      case Effect::add:
      case Effect::choose:
      case Effect::least:
        return 2;
      default:
        return 3;
    }
  }

  ValueId sum(std::span<const ValueId> of) {
    ValueId total = ValueTable::kZero;
    for (const ValueId value : of) total = values_.add(total, value);
    return total;
  }

  // With what a carry may add.
  ValueId carried(ValueId value) { return has(Modifier::X) ? values_.inexact(value) : value; }

  ValueId either(ValueId a, ValueId b) {
    return a == ValueTable::kNothing || b == ValueTable::kNothing ? ValueTable::kNothing : values_.join(a, b);
  }

  // Neither of the two as a whole.
  bool in_parts() const { return step_.instruction.modifiers.any(Modifier::U16x2, Modifier::S16x2, Modifier::RELU); }

  void multiply() {
    if (has(Modifier::WIDE)) return multiply_wide();
    if (has(Modifier::HI)) {
      const ValueId high = machine_.opaque({from_.at(0), from_.at(1), from_.at(2), upper(2)});
      return place(step_, std::array{high});
    }
    place(step_, std::array{carried(values_.add(values_.product(from_.at(0), from_.at(1)), from_.at(2)))});
  }

  // 64 bits: the upper half of a product with a small number is small.
  void multiply_wide() {
    const auto a = values_.constant_of(from_.at(0));
    const auto b = values_.constant_of(from_.at(1));
    ValueId low = values_.product(from_.at(0), from_.at(1));
    ValueId high = ValueTable::kNumber;
    if (a && b) {
      const uint64_t product = has(Modifier::U32)
                                   ? uint64_t{*a} * *b
                                   : static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(*a)) *
                                                           static_cast<int64_t>(static_cast<int32_t>(*b)));
      low = values_.constant(static_cast<uint32_t>(product));
      high = values_.constant(static_cast<uint32_t>(product >> 32));
    } else if (a == 0U || b == 0U) {
      high = ValueTable::kZero;
    } else {
      const ValueId factors = machine_.opaque({from_.at(0), from_.at(1)});
      const bool small = (a && *a <= 0xffff) || (b && *b <= 0xffff);
      high = small ? values_.bounded(factors) : factors;
    }
    // A carry comes from the lower half.
    place(step_, std::array{carried(values_.add(low, from_.at(2))), values_.inexact(values_.add(high, upper(2)))});
  }

  // LEA: b + (a << shift). LEA.HI: b + ({c, a} >> 32 - shift).
  ValueId scaled() {
    const size_t last = from_.operands.size() - 1;
    const bool fixed = from_.operands[last].is(OperandKind::immediate);
    const uint32_t shift = from_.operands[last].value;
    if (!has(Modifier::HI)) {
      const ValueId index = fixed && shift < 32 ? values_.product(from_.at(0), values_.constant(1U << shift))
                                                : machine_.opaque({from_.at(0)});
      return values_.add(index, from_.at(1));
    }
    if (last == 3 && fixed && shift == 0) return values_.add(from_.at(2), from_.at(1));
    const bool few_bits = fixed && shift <= 16;  // of the lower half, and its sign
    std::vector<ValueId> index{few_bits ? values_.bounded(from_.at(0)) : from_.at(0)};
    for (size_t i = 2; i < last; ++i) index.push_back(from_.at(i));
    return values_.add(values_.opaque(index), from_.at(1));
  }

  void bits() {
    if (!from_.operands[3].is(OperandKind::immediate)) return step_.doubt("bits by an unknown table");
    const std::array three{from_.at(0), from_.at(1), from_.at(2)};
    place(step_, std::array{values_.bitwise(static_cast<uint8_t>(from_.operands[3].value), three)});
  }

  ValueId shifted() {
    const auto shift = values_.constant_of(from_.at(1));
    const bool right = has(Modifier::R);
    const bool high = has(Modifier::HI);
    if (shift == 0U && !high) return from_.at(0);
    const bool sign_only = shift == 31U && has(Modifier::S32);
    const bool upper_only = shift && *shift >= 16 && high && from_.at(0) == ValueTable::kZero && !has(Modifier::U64);
    if (right && (sign_only || upper_only)) return values_.bounded(from_.at(2));
    const bool plain = !right && has(Modifier::U32) && !high && shift && *shift < 32;
    if (plain) return values_.product(from_.at(0), values_.constant(1U << *shift));
    return machine_.opaque({from_.at(0), from_.at(2)});
  }

  // PRMT: each byte of the result is one of the eight of c and a.
  ValueId bytes() {
    const auto selector = values_.constant_of(from_.at(1));
    if (!selector) return values_.opaque(from_.values);
    std::array<uint32_t, 4> from{};
    for (uint32_t k = 0; k < 4; ++k) from[k] = *selector >> 4 * k & 15;
    if (from == std::array<uint32_t, 4>{0, 1, 2, 3}) return from_.at(0);
    if (from == std::array<uint32_t, 4>{4, 5, 6, 7}) return from_.at(2);
    if (std::any_of(from.begin(), from.end(), [](uint32_t x) { return x >= 8; })) return values_.opaque(from_.values);
    const auto a = values_.constant_of(from_.at(0));
    const auto c = values_.constant_of(from_.at(2));
    if (a && c) {
      const uint64_t all = uint64_t{*c} << 32 | *a;
      uint32_t result = 0;
      for (uint32_t k = 0; k < 4; ++k) result |= static_cast<uint32_t>(all >> 8 * from[k] & 255) << 8 * k;
      return values_.constant(result);
    }
    const auto source = [&](uint32_t x) { return x < 4 ? from_.at(0) : from_.at(2); };
    const bool upper_zero = source(from[2]) == ValueTable::kZero && source(from[3]) == ValueTable::kZero;
    if (!upper_zero) return values_.opaque(from_.values);
    return values_.bounded(machine_.opaque({source(from[0]), source(from[1])}));
  }

  void choose() {
    const ValueId a = from_.at(0);
    const ValueId b = from_.at(1);
    const bool rounds = has(Modifier::FTZ);  // FSEL.FTZ changes small floats
    place(step_, std::array{rounds ? machine_.opaque({a, b}) : either(a, b)});
    const CodeOperand& result = step_.instruction.operands[0];
    const CodeOperand& by = step_.instruction.operands.back();
    const bool whole = step_.instruction.row.opcode == Opcode::SEL && step_.instruction.guard.always() &&
                       a != ValueTable::kNothing && b != ValueTable::kNothing;
    if (!whole || !by.is(OperandKind::predicate) || by.predicate >= kUniformPredicate * 2) return;
    if (is_uniform(result.reg) && by.predicate < kUniformPredicate) return;
    step_.state.choose(result.reg, by.predicate, by.negated ? b : a, by.negated ? a : b);
  }

  void load_constant() {
    const CodeOperand& from = from_.operands[0];
    if (!from.is(OperandKind::constant)) return step_.doubt("a constant of an unknown form");
    if (step_.instruction.modifiers.any(Modifier::U8, Modifier::S8, Modifier::U16, Modifier::S16))
      return load_small(from);
    const uint32_t count = has(Modifier::n128) ? 4 : has(Modifier::n64) ? 2 : 1;
    std::vector<ValueId> words;
    for (uint32_t k = 0; k < count; ++k) words.push_back(value_of(step_, from, k));
    place(step_, words);
  }

  // A byte or two; of a parameter, the launch knows them.
  void load_small(const CodeOperand& from) {
    const ValueId word = value_of(step_, from);
    std::optional<ExpressionPart> index = ExpressionPart{};
    if (from.reg != kNoRegister) index = values_.expression_of(step_.read(from.reg));
    uint32_t made = 0;
    if (index && from.bank == 0 && step_.instruction.modifiers.any(Modifier::U8, Modifier::U16)) {
      const ExpressionPart displacement{false, from.value - machine_.kernel.parameters_at};
      made = values_.expressions.make(Operation::load, has(Modifier::U8) ? 1 : 2, displacement, *index);
    }
    place(step_, std::array{values_.bounded(machine_.opaque({word}), {true, made}, made != 0)});
  }

  const Step& step_;
  KernelMachine& machine_;
  ValueTable& values_;
  Sources from_;
};

}  // namespace

void execute_arithmetic(const Step& step) { Arithmetic(step).run(); }

}  // namespace reprise::code
