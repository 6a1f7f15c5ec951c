#include "analyzer/code/listing/operand.h"

#include <charconv>
#include <optional>

namespace reprise::code {
namespace {

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

std::optional<uint32_t> take_decimal(std::string_view& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// 0x10, -0x10: of 32 bits, or of what 32 bits hold.
std::optional<uint32_t> take_hexadecimal(std::string_view& text) {
  std::string_view rest = text;
  const bool negative = take(rest, "-");
  if (!take(rest, "0x")) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, 16);
  if (error != std::errc() || end == rest.data()) return std::nullopt;
  text = rest.substr(static_cast<size_t>(end - rest.data()));
  return negative ? 0U - value : value;
}

// R12, RZ, UR4, URZ, B3.
std::optional<Register> take_register(std::string_view& text) {
  std::string_view rest = text;
  const bool uniform = take(rest, "U");
  const bool barrier = !uniform && take(rest, "B");
  if (!barrier && !take(rest, "R")) return std::nullopt;
  Register found = kZero;
  if (barrier || !take(rest, "Z")) {
    const auto number = take_decimal(rest);
    const uint32_t most = barrier ? kBarriers : uniform ? kUniforms - 1U : 255U;
    if (!number || *number >= most) return std::nullopt;
    found = static_cast<Register>(*number + (barrier ? kBarrier : uniform ? kUniform : 0U));
  }
  text = rest;
  return found;
}

// What stands behind a register: `.reuse` means nothing, `.64` of a pair neither. Whether all was understood; `part`
// where the operand is only some of the register's bits.
bool take_suffixes(std::string_view& text, bool& part) {
  while (take(text, ".")) {
    const size_t end = text.find_first_of(".|");
    const std::string_view suffix = text.substr(0, end);
    text.remove_prefix(suffix.size());
    if (suffix.empty()) return false;
    if (suffix != "reuse" && suffix != "64") part = true;
  }
  return true;
}

struct Marks {
  Sign sign = Sign::plain;
  bool bars = false;
};

Marks take_marks(std::string_view& text) {
  Marks marks;
  if (take(text, "-")) marks.sign = Sign::negative;
  if (marks.sign == Sign::plain && (take(text, "~") || take(text, "!"))) marks.sign = Sign::inverted;
  marks.bars = take(text, "|");
  return marks;
}

// What ends an operand that began with marks.
bool finish(std::string_view text, Marks marks, CodeOperand& operand) {
  bool part = marks.bars;
  if (!take_suffixes(text, part)) return false;
  if (marks.bars && !take(text, "|")) return false;
  if (!take_suffixes(text, part) || !text.empty()) return false;
  operand.sign = part ? Sign::part : marks.sign;
  return true;
}

std::optional<CodeOperand> as_predicate(std::string_view text) {
  CodeOperand operand{.kind = OperandKind::predicate};
  operand.negated = take(text, "!");
  const bool uniform = take(text, "U");
  if (!take(text, "P")) return std::nullopt;
  if (text == "T") return operand;
  if (text == "R") {
    operand.predicate = kAllPredicates;
    return operand;
  }
  const auto number = take_decimal(text);
  if (!number || *number >= kUniformPredicate || !text.empty()) return std::nullopt;
  operand.predicate = static_cast<Predicate>(*number + (uniform ? kUniformPredicate : 0U));
  return operand;
}

std::optional<CodeOperand> as_register(std::string_view text) {
  const Marks marks = take_marks(text);
  const auto found = take_register(text);
  if (!found) return std::nullopt;
  CodeOperand operand{.kind = OperandKind::registers, .reg = *found};
  if (!finish(text, marks, operand)) return std::nullopt;
  return operand;
}

std::optional<CodeOperand> as_constant(std::string_view text) {
  const Marks marks = take_marks(text);
  if (!take(text, "c[")) return std::nullopt;
  const auto bank = take_hexadecimal(text);
  if (!bank || *bank > 31 || !take(text, "][")) return std::nullopt;
  CodeOperand operand{.kind = OperandKind::constant, .bank = static_cast<uint8_t>(*bank)};
  if (const auto index = take_register(text)) {
    if (*index != kZero) operand.reg = *index;
    if (!take(text, "+") && !text.starts_with("]")) return std::nullopt;
  }
  if (!text.starts_with("]")) {
    const auto offset = take_hexadecimal(text);
    if (!offset) return std::nullopt;
    operand.value = *offset;
  }
  if (!take(text, "]") || !finish(text, marks, operand)) return std::nullopt;
  return operand;
}

bool take_address_register(std::string_view& term, CodeOperand& operand) {
  const auto found = take_register(term);
  if (!found) return false;
  AddressForm form = AddressForm::plain;
  if (take(term, ".64"))
    form = AddressForm::wide;
  else if (take(term, ".U32"))
    form = AddressForm::narrow;
  else if (take(term, "."))
    form = AddressForm::scaled, term = {};
  if (!term.empty()) return false;
  if (*found == kZero) return form != AddressForm::scaled;
  if (operand.reg == kNoRegister) {
    operand.reg = *found;
    operand.form = form;
    return true;
  }
  if (operand.second != kNoRegister || (form != AddressForm::plain && form != AddressForm::wide)) return false;
  operand.second = *found;
  return true;
}

// [R2.64+UR4+0x10], behind a descriptor, which is desc[UR4].
std::optional<CodeOperand> as_address(std::string_view text) {
  if (take(text, "desc[")) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  if (!take(text, "[")) return std::nullopt;
  const size_t end = text.find(']');
  if (end == std::string_view::npos || end + 1 != text.size()) return std::nullopt;
  text = text.substr(0, end);
  CodeOperand operand{.kind = OperandKind::address};
  while (!text.empty()) {
    std::string_view term = text.substr(0, text.find('+'));
    text.remove_prefix(term.size() < text.size() ? term.size() + 1 : term.size());
    if (const auto offset = take_hexadecimal(term)) {
      operand.value += *offset;
      if (!term.empty()) return std::nullopt;
    } else if (!take_address_register(term, operand)) {
      return std::nullopt;
    }
  }
  return operand;
}

std::optional<CodeOperand> as_immediate(std::string_view text) {
  const auto value = take_hexadecimal(text);
  if (!value || !text.empty()) return std::nullopt;
  return CodeOperand{.kind = OperandKind::immediate, .value = *value};
}

std::optional<CodeOperand> as_half(std::string_view text) {
  if (!take(text, "32@")) return std::nullopt;
  CodeOperand operand{.kind = OperandKind::half};
  operand.upper = take(text, "hi(");
  if (!operand.upper && !take(text, "lo(")) return std::nullopt;
  if (!text.ends_with(")")) return std::nullopt;
  operand.name = text.substr(0, text.size() - 1);
  return operand;
}

// 1.5, +INF, -QNAN, gdesc[UR4], SB0, {1,2}.
std::optional<CodeOperand> as_number(std::string_view text) {
  const CodeOperand number{.kind = OperandKind::number};
  if (text.starts_with("gdesc[UR") || text.starts_with("desc[UR")) {
    return text.ends_with("]") && text.find('[') == text.rfind('[') ? std::optional(number) : std::nullopt;
  }
  if (text.starts_with("{")) {
    const bool plain = text.ends_with("}") && text.find_first_not_of("{},0123456789") == std::string_view::npos;
    return plain ? std::optional(number) : std::nullopt;
  }
  std::string_view rest = text;
  if (take(rest, "SB") || take(rest, "gsb")) {
    return take_decimal(rest) && rest.empty() ? std::optional(number) : std::nullopt;
  }
  while (take(rest, "-") || take(rest, "+") || take(rest, "|")) {
  }
  if (rest.ends_with("|")) rest.remove_suffix(1);
  if (rest == "INF" || rest == "QNAN" || rest == "SNAN") return number;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end == rest.data() || (error != std::errc() && error != std::errc::result_out_of_range)) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return rest.empty() || rest == ".reuse" ? std::optional(number) : std::nullopt;
}

}  // namespace

CodeOperand read_operand(std::string_view text) {
  if (text.starts_with("SR_") || text == "SRZ") return {.kind = OperandKind::special, .name = text};
  using Reader = std::optional<CodeOperand> (*)(std::string_view);
  for (const Reader read : {as_predicate, as_register, as_immediate, as_constant, as_address, as_half, as_number}) {
    if (auto operand = read(text)) return *operand;
  }
  return {};
}

}  // namespace reprise::code
