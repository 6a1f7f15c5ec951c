// What operands are worth: registers, constants, addresses of symbols.
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/code/machine.h"

namespace reprise::code {
namespace {

constexpr uint32_t kDimensions = 0x18;  // of constant bank 0: block and grid, numbers
constexpr uint32_t kLocalWindow = 0x20;
constexpr uint32_t kStack = 0x28;
enum : uint8_t { kLaunchBank = 0, kLiteralBank = 2, kConstantBank = 3, kAddressBank = 4 };

uint32_t parameter_bytes(const images::KernelCode& kernel) {
  uint32_t bytes = 0;
  for (const images::ParameterImage& parameter : kernel.parameters)
    bytes = std::max(bytes, parameter.offset + parameter.bytes);
  return bytes;
}

ValueId launch_word(KernelMachine& machine, uint32_t word) {
  const bool upper = word / 4 % 2 != 0;
  const uint32_t base = machine.kernel.parameters_at;
  if (word >= base) {
    // What stands behind the parameters is not the launch's to show.
    const bool behind = word - base >= ((parameter_bytes(machine.kernel) + 7) & ~7U);
    return machine.values.symbol(behind ? Base{BaseKind::constants, 0} : Base{BaseKind::parameter, (word - base) & ~7U},
                                 upper);
  }
  if (word < kDimensions) return ValueTable::kNumber;
  if (word == kStack) return machine.values.symbol({BaseKind::stack, 0}, false);
  if ((word & ~7U) == kLocalWindow) return machine.values.symbol({BaseKind::local, 0}, upper);
  return machine.values.symbol({BaseKind::driver, word & ~7U}, upper);
}

ValueId computed_word(KernelMachine& machine, uint32_t word, ValueId index) {
  const auto known = machine.values.expression_of(index);
  const ComputedPlace where{(word - machine.kernel.parameters_at) & ~7U, known && known->expression ? known->value : 0};
  return machine.values.symbol({BaseKind::computed, machine.values.symbols.place_number(where)}, word / 4 % 2 != 0);
}

ValueId address_word(const Step& step, uint32_t word) {
  KernelMachine& machine = step.machine;
  const auto found = machine.image.addresses.find(word & ~7U);
  if (found == machine.image.addresses.end()) {
    step.doubt(fmt::format("c[0x4][{:#x}] is no address of a symbol", word));
    return ValueTable::kNumber;
  }
  const uint32_t name = machine.values.symbols.name_number(found->second);
  return machine.values.symbol({BaseKind::module, name}, word / 4 % 2 != 0);
}

// "(function + .L_x_5@srel)": where a call returns to, in its section.
ValueId place_in_code(const Step& step, std::string_view name, bool upper) {
  const size_t begin = name.find('+');
  const size_t end = name.find('@');
  std::string_view label =
      begin == std::string_view::npos || end < begin ? "" : name.substr(begin + 1, end - begin - 1);
  while (label.starts_with(' ')) label.remove_prefix(1);
  const auto found = step.machine.listing.label(label);
  if (!found) {
    step.doubt("a place in the code that is not there");
    return ValueTable::kNumber;
  }
  return upper ? ValueTable::kZero : step.machine.values.constant(step.machine.listing.code()[*found].offset);
}

ValueId half_of(const Step& step, const CodeOperand& operand) {
  std::string_view name = operand.name;
  if (name.find("@srel") != std::string_view::npos) return place_in_code(step, name, operand.upper);
  while (name.starts_with('(') && name.ends_with(')')) name = name.substr(1, name.size() - 2);
  return step.machine.values.symbol({BaseKind::module, step.machine.values.symbols.name_number(name)}, operand.upper);
}

ValueId immediate(ValueTable& values, uint32_t value, uint32_t half) {
  if (half == 0) return values.constant(value);
  return value >> 31 == 0 ? ValueTable::kZero : ValueTable::kNumber;
}

ValueId signed_value(KernelMachine& machine, ValueId value, Sign sign) {
  if (sign == Sign::negative) return machine.values.negative(value);
  if (sign == Sign::inverted) return machine.values.inverted(value);
  return sign == Sign::part ? machine.opaque({value}) : value;
}

}  // namespace

ValueId constant_word(const Step& step, const CodeOperand& operand, uint32_t half) {
  KernelMachine& machine = step.machine;
  std::optional<uint32_t> known = 0;
  ValueId index = ValueTable::kZero;
  if (operand.reg != kNoRegister) {
    index = step.read(operand.reg);
    if (index == ValueTable::kNothing) return index;
    known = machine.values.constant_of(index);
  }
  const uint32_t word = operand.value + 4 * half + known.value_or(0);
  switch (operand.bank) {
    case kLaunchBank:
      return known ? launch_word(machine, word) : computed_word(machine, word, index);
    case kLiteralBank:
      // Places in code, for switches; where the linker writes some, they may be addresses.
      if (!machine.image.relocated_literals) return ValueTable::kNumber;
      [[fallthrough]];
    case kConstantBank:
      return machine.values.symbol({BaseKind::constants, 0}, word / 4 % 2 != 0);
    case kAddressBank:
      if (known) return address_word(step, word);
      step.doubt("a computed place in constant bank 4");
      return ValueTable::kNumber;
    default:
      step.doubt(fmt::format("constant bank {}", operand.bank));
      return ValueTable::kNumber;
  }
}

ValueId value_of(const Step& step, const CodeOperand& operand, uint32_t half) {
  ValueId found = ValueTable::kNumber;
  switch (operand.kind) {
    case OperandKind::registers:
      found = step.read(static_cast<Register>(operand.reg + half));
      break;
    case OperandKind::constant:
      found = constant_word(step, operand, half);
      break;
    case OperandKind::immediate:
      return immediate(step.machine.values, operand.value, half);
    case OperandKind::half:
      return half_of(step, operand);
    case OperandKind::number:
    case OperandKind::predicate:
      return ValueTable::kNumber;
    default:
      step.doubt("an operand of an unknown form");
      return ValueTable::kNumber;
  }
  return signed_value(step.machine, found, operand.sign);
}

std::vector<ValueId> moved(const Step& step, const CodeOperand& operand, uint32_t count) {
  std::vector<ValueId> words;
  if (operand.is(OperandKind::predicate)) return words;
  const bool registers = operand.is(OperandKind::registers) && operand.reg != kZero;
  if (registers && operand.sign != Sign::plain) step.doubt("a store of a changed register");
  for (uint32_t k = 0; k < count; ++k) {
    words.push_back(registers ? step.read(static_cast<Register>(operand.reg + k)) : value_of(step, operand));
  }
  return words;
}

void place(const Step& step, std::span<const ValueId> results, bool whole) {
  for (const CodeOperand& operand : step.instruction.operands) {
    if (!operand.is(OperandKind::registers)) continue;
    if (operand.reg == kZero) return;
    for (size_t k = 0; k < results.size(); ++k) {
      const Value& result = step.machine.values[results[k]];
      const bool keep = whole || (result.sole.empty() && result.sums.empty());
      const ValueId value = keep ? results[k] : step.machine.opaque({results[k]});
      step.write(static_cast<Register>(operand.reg + k), value);
    }
    return;
  }
  step.doubt("no result");
}

}  // namespace reprise::code
