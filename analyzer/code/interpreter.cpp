// What instructions do that neither compute addresses nor touch memory; and which predicates any of them sets.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyzer/code/machine.h"

namespace reprise::code {
namespace {

// What an operand list may hold beside sources: the first register is the result.
std::vector<CodeOperand> sources_of(const Instruction& instruction) {
  std::vector<CodeOperand> sources;
  bool first = true;
  for (const CodeOperand& operand : instruction.operands) {
    if (operand.is(OperandKind::predicate)) continue;
    if (!first) sources.push_back(operand);
    first = false;
  }
  return sources;
}

// Some number of all sources. `pairs`: each is of 64 bits. `twice`: so is the result.
void make_number(const Step& step, bool pairs, bool twice) {
  std::vector<ValueId> values;
  for (const CodeOperand& operand : sources_of(step.instruction)) {
    values.push_back(value_of(step, operand));
    if (pairs && !operand.is(OperandKind::predicate)) values.push_back(value_of(step, operand, 1));
  }
  const ValueId number = step.machine.values.opaque(values);
  place(step, std::vector<ValueId>(twice ? 2 : 1, number));
}

// HFMA2.MMA R0, -RZ, RZ, 0, 0: how compilers write 0 at times.
bool is_zero(const Instruction& instruction) {
  if (instruction.row.opcode != Opcode::HFMA2) return false;
  const auto at = instruction.text.find(',');
  return at != std::string_view::npos && instruction.text.substr(at) == ", -RZ, RZ, 0, 0";
}

void convert(const Step& step) {
  const Instruction& i = step.instruction;
  const bool doubles = i.has(Modifier::F64);
  const bool longs = i.modifiers.any(Modifier::S64, Modifier::U64);
  switch (i.row.opcode) {
    case Opcode::F2F:
      if (doubles && i.has(Modifier::unknown)) step.doubt("a conversion of unknown types");
      return make_number(step, doubles && i.first_type != Modifier::F64, doubles && i.first_type == Modifier::F64);
    case Opcode::F2I:
      return make_number(step, doubles, longs);
    case Opcode::I2F:
      return make_number(step, longs, doubles);
    case Opcode::I2I:
      return make_number(step, longs, longs);
    default:
      return make_number(step, doubles, doubles);
  }
}

// How many registers an HMMA fills; 0: not certain.
Register filled_by(const Instruction& i) {
  constexpr std::string_view kShapes[] = {"HMMA.1684.", "HMMA.1688.", "HMMA.16816.", "HMMA.SP.16816.",
                                          "HMMA.SP.16832."};
  const bool usual = std::any_of(std::begin(kShapes), std::end(kShapes),
                                 [&](std::string_view begin) { return i.text.starts_with(begin); });
  return !usual ? Register{0} : i.has(Modifier::F32) ? Register{4} : i.has(Modifier::F16) ? Register{2} : Register{0};
}

// Products of matrices fill several registers; where it is not certain how many, what they held before stays possible.
void multiply_matrices(const Step& step) {
  const Instruction& i = step.instruction;
  if (i.operands.empty() || !i.operands[0].is(OperandKind::registers))
    return step.doubt("a matrix product without result");
  const ValueId number = step.machine.opaque({step.machine.values.symbol({BaseKind::product, 0}, false)});
  const Register first = i.operands[0].reg;
  if (const Register filled = filled_by(i); filled != 0) return place(step, std::vector<ValueId>(filled, number));
  const auto count = static_cast<Register>(i.columns == 0 ? 8 : std::max(i.columns / 2, 1));
  for (Register n = 0; n < count && holds(first) && first + n < kUniform; ++n) {
    const auto reg = static_cast<Register>(first + n);
    step.write(reg, step.machine.values.join(step.read(reg), number));
  }
}

void vote(const Step& step) {
  const Instruction& i = step.instruction;
  const bool of_all = !i.operands.empty() && i.operands.back().is(OperandKind::predicate) &&
                      i.operands.back().predicate == kTrue && !i.operands.back().negated;
  if (i.row.opcode == Opcode::VOTE && i.has(Modifier::ANY) && of_all)
    step.machine.flag(Impurity::active_mask, step.number);
  const auto result = std::find_if(i.operands.begin(), i.operands.end(),
                                   [](const CodeOperand& operand) { return operand.is(OperandKind::registers); });
  if (result != i.operands.end()) step.write(result->reg, ValueTable::kNumber);
}

struct SpecialRegister {
  std::string_view part;  // of its name
  Impurity impurity;
};
constexpr SpecialRegister kImpureRegisters[] = {
    {"CLOCK", Impurity::clock},    {"TIMER", Impurity::clock},      {"_PM", Impurity::clock},
    {"SMID", Impurity::processor}, {"VIRTID", Impurity::processor}, {"WARPID", Impurity::processor},
};
// The same in each launch of the same shape.
constexpr std::string_view kPureRegisters[] = {"SRZ",       "SR_TID.",   "SR_CTAID.",   "SR_NTID",     "SR_NCTAID",
                                               "SR_LANEID", "SR_EQMASK", "SR_LTMASK",   "SR_LEMASK",   "SR_GTMASK",
                                               "SR_GEMASK", "SR_SWINHI", "SR_CgaCtaId", "SR_LMEMHIOFF"};

void flag_special(const Step& step, std::string_view name) {
  for (const SpecialRegister& impure : kImpureRegisters) {
    if (name.find(impure.part) != std::string_view::npos) return step.machine.flag(impure.impurity, step.number);
  }
  const bool pure = std::any_of(std::begin(kPureRegisters), std::end(kPureRegisters),
                                [name](std::string_view begin) { return name.starts_with(begin); });
  if (!pure) step.machine.flag(Impurity::special_register, step.number);
}

void read_special(const Step& step) {
  const Instruction& i = step.instruction;
  if (i.operands.empty() || !i.operands.back().is(OperandKind::special)) {
    return i.operands.size() == 2 && i.operands[1].is(OperandKind::registers) && i.operands[1].reg == kZero
               ? place(step, std::vector<ValueId>(i.has(Modifier::n32) ? 1 : 2, ValueTable::kZero))
               : step.doubt("a special register of an unknown name");
  }
  ValueTable& values = step.machine.values;
  const std::string_view name = i.operands.back().name;
  flag_special(step, name);
  ValueId value = ValueTable::kNumber;
  if (name == "SRZ") value = ValueTable::kZero;
  if (name == "SR_SWINHI") value = values.symbol({BaseKind::shared, 0}, true);
  if (name.starts_with("SR_CTAID.") && name.size() == 10 && name.back() >= 'X' && name.back() <= 'Z') {
    const uint32_t id = values.expressions.make(Operation::block_id, static_cast<uint32_t>(name.back() - 'X'), {}, {});
    value = values.bounded(ValueTable::kNumber, {true, id}, id != 0);
  }
  const bool twice = i.row.opcode == Opcode::CS2R && !i.has(Modifier::n32);
  place(step, std::vector<ValueId>(twice ? 2 : 1, value));
}

void read_place(const Step& step) {
  ValueId value = ValueTable::kNumber;
  if (!step.instruction.targets.empty()) {
    const auto target = step.machine.listing.label(step.instruction.targets[0]);
    if (!target) return step.doubt("a place in the code that is not there");
    value = step.machine.values.constant(step.machine.listing.code()[*target].offset);
  }
  place(step, std::array{value, ValueTable::kZero});
}

void set_barrier(const Step& step) {
  const Instruction& i = step.instruction;
  const auto target = i.targets.size() == 1 ? step.machine.listing.label(i.targets[0]) : std::nullopt;
  if (!target || i.operands.empty() || !i.operands[0].is(OperandKind::registers) || i.operands[0].reg < kBarrier) {
    return step.doubt("a barrier of an unknown form");
  }
  step.write(i.operands[0].reg, step.machine.values.symbol({BaseKind::barrier, *target}, false));
}

void move_barrier(const Step& step) {
  const Instruction& i = step.instruction;
  const bool good =
      i.operands.size() == 2 && i.operands[0].is(OperandKind::registers) && i.operands[1].is(OperandKind::registers);
  if (!good || i.operands[1].sign != Sign::plain) return step.doubt("a barrier's move of an unknown form");
  if (i.operands[0].reg == kZero) return;
  step.write(i.operands[0].reg, step.read(i.operands[1].reg));
  if (i.has(Modifier::n64)) step.write(static_cast<Register>(i.operands[0].reg + 1), ValueTable::kNumber);
}

}  // namespace

PredicateSet set_predicates(const Instruction& instruction) {
  PredicateSet found;
  uint32_t left = instruction.row.predicates;
  bool past_result = false;
  for (const CodeOperand& operand : instruction.operands) {
    if (left == 0) break;
    if (operand.is(OperandKind::predicate) && !operand.negated) {
      found.add(operand.predicate);
      --left;
    } else if (operand.is(OperandKind::registers) && !past_result) {
      past_result = true;
    } else {
      break;
    }
  }
  return found;
}

void execute(const Step& step) {
  const Instruction& i = step.instruction;
  if (i.row.effect == Effect::unknown) return step.doubt("an opcode that is not known");
  if (!i.row.any && !i.modifiers.within(i.row.allowed)) return step.doubt("a modifier that is not known");
  if (i.guard.predicate == kTrue && i.guard.negated) return;  // never
  switch (i.row.effect) {
    case Effect::number:
      is_zero(i) ? place(step, std::array{ValueTable::kZero}) : make_number(step, false, false);
      break;
    case Effect::doubles:
      make_number(step, true, true);
      break;
    case Effect::convert:
      convert(step);
      break;
    case Effect::matrix:
      multiply_matrices(step);
      break;
    case Effect::vote:
      vote(step);
      break;
    case Effect::special:
      read_special(step);
      break;
    case Effect::code_address:
      read_place(step);
      break;
    case Effect::dependent:
      step.machine.flag(Impurity::dependent_launch, step.number);
      break;
    case Effect::barrier:
      set_barrier(step);
      break;
    case Effect::move_barrier:
      move_barrier(step);
      break;
    default:
      if (i.row.effect >= Effect::load_shared && i.row.effect <= Effect::tensor) {
        execute_memory(step);
      } else if (i.row.effect >= Effect::copy && i.row.effect <= Effect::load_constant) {
        execute_arithmetic(step);
      }
  }
  if (i.row.predicates > 0) step.state.forget(set_predicates(i));
}

}  // namespace reprise::code
