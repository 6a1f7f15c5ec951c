#include "tests/code/interpreter/instruction.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace reprise::sass {
namespace {

struct NamedPart {
  Part part;
  std::string_view texts;  // one or more words
};
constexpr NamedPart kParts[] = {
#define PART(name, text) {Part::name, text},
#include "tests/code/interpreter/parts.def"
#undef PART
};

// Whether `word` is one of the words of `texts`.
bool has_word(std::string_view texts, std::string_view word) {
  while (!texts.empty()) {
    const std::string_view first = texts.substr(0, texts.find(' '));
    if (first == word) return true;
    texts.remove_prefix(std::min(texts.size(), first.size() + 1));
  }
  return false;
}

Part part_of(std::string_view text) {
  for (const NamedPart& row : kParts) {
    if (has_word(row.texts, text)) return row.part;
  }
  return Part::unknown;
}

Parts parts_of(std::string_view texts, char between) {
  Parts parts;
  while (!texts.empty()) {
    const std::string_view first = texts.substr(0, texts.find(between));
    if (!first.empty()) parts.add(part_of(first));
    texts.remove_prefix(std::min(texts.size(), first.size() + 1));
  }
  return parts;
}

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool take_hexadecimal(std::string_view& text, uint32_t& value) {
  std::string_view rest = text;
  const bool minus = take(rest, "-");
  if (!take(rest, "0x")) return false;
  const size_t end = std::min(rest.find_first_not_of("0123456789abcdef"), rest.size());
  const uint64_t number = std::strtoull(std::string(rest.substr(0, end)).c_str(), nullptr, 16);
  value = static_cast<uint32_t>(minus ? 0 - number : number);
  text = rest.substr(end);
  return end > 0;
}

// The number behind a letter; `zero` for Z.
bool take_number(std::string_view& text, uint8_t zero, uint8_t& number) {
  if (take(text, "Z")) return number = zero, true;
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0 || end > 3) return false;
  number = static_cast<uint8_t>(std::atoi(std::string(text.substr(0, end)).c_str()));
  text.remove_prefix(end);
  return true;
}

bool take_register(std::string_view& text, bool& uniform, uint8_t& number) {
  std::string_view rest = text;
  uniform = take(rest, "U");
  if (!take(rest, "R") || !take_number(rest, uniform ? kZeroUniform : kZeroRegister, number)) return false;
  text = rest;
  return true;
}

bool read_predicate(std::string_view text, Operand& operand) {
  operand.inverted = take(text, "!");
  operand.kind = take(text, "U") ? Kind::uniform_predicate : Kind::predicate;
  if (!take(text, "P")) return false;
  if (text == "T" || text == "R") return operand.number = text == "T" ? kTruth : kPredicates, true;
  return take_number(text, 0, operand.number) && text.empty() && operand.number < kTruth;
}

bool read_suffixes(std::string_view text, Operand& operand) {
  constexpr std::string_view kPieces[] = {"H0_H0", "H1_H1", "B0", "B1", "B2", "B3"};
  while (take(text, ".")) {
    const std::string_view word = text.substr(0, text.find('.'));
    text.remove_prefix(word.size());
    const auto* found = std::find(std::begin(kPieces), std::end(kPieces), word);
    if (found != std::end(kPieces)) {
      operand.piece = static_cast<uint8_t>(1 + (found - std::begin(kPieces)));
    } else if (word != "reuse" && word != "64") {
      return false;
    }
  }
  return text.empty();
}

bool read_register(std::string_view text, Operand& operand) {
  bool uniform = false;
  if (!take_register(text, uniform, operand.number)) return false;
  operand.kind = uniform ? Kind::uniform : Kind::reg;
  return read_suffixes(text, operand);
}

bool read_constant(std::string_view text, Operand& operand) {
  uint32_t bank = 0;
  if (!take(text, "c[") || !take_hexadecimal(text, bank) || !take(text, "][")) return false;
  operand.kind = Kind::constant;
  operand.bank = static_cast<uint8_t>(bank);
  operand.number = kZeroRegister;
  if (take_register(text, operand.by_uniform, operand.number)) take(text, "+");
  take_hexadecimal(text, operand.value);
  return take(text, "]") && read_suffixes(text, operand);
}

bool read_term(std::string_view term, Operand& operand) {
  uint32_t displacement = 0;
  if (take_hexadecimal(term, displacement)) return operand.value += displacement, term.empty();
  bool uniform = false;
  uint8_t number = 0;
  if (!take_register(term, uniform, number)) return false;
  (uniform ? operand.uniform : operand.number) = number;
  if (take(term, ".64") && !uniform) operand.wide = true;
  if (take(term, ".U32")) operand.narrow = true;
  if (take(term, ".X16")) operand.shift = 4;
  if (take(term, ".X")) operand.shift = term == "4" ? 2 : 3, term = {};
  return term.empty();
}

bool read_address(std::string_view text, Operand& operand) {
  if (take(text, "desc[")) text.remove_prefix(std::min(text.size(), text.find(']') + 1));
  if (!take(text, "[") || !text.ends_with("]")) return false;
  text.remove_suffix(1);
  operand.kind = Kind::address;
  operand.number = kZeroRegister;
  while (!text.empty()) {
    const std::string_view term = text.substr(0, text.find('+'));
    text.remove_prefix(std::min(text.size(), term.size() + 1));
    if (!read_term(term, operand)) return false;
  }
  return true;
}

bool read_real(std::string_view text, Operand& operand) {
  operand.kind = Kind::real;
  if (text.ends_with(".reuse")) text.remove_suffix(6);
  text = trimmed(text);
  std::string_view rest = text;
  const bool minus = take(rest, "-");
  take(rest, "+");
  if (rest == "INF") return operand.real = (minus ? -1 : 1) * std::numeric_limits<double>::infinity(), true;
  if (rest == "QNAN" || rest == "SNAN") return operand.real = std::numeric_limits<double>::quiet_NaN(), true;
  const std::string number(text);
  char* end = nullptr;
  operand.real = std::strtod(number.c_str(), &end);
  return end != number.c_str() && *end == '\0' && number.find_first_not_of("+-.0123456789e") == std::string::npos;
}

// What is behind the marks in front, and in bars.
bool read_marked(std::string_view text, Operand& operand) {
  uint32_t whole = 0;
  std::string_view rest = text;
  if (take_hexadecimal(rest, whole) && rest.empty()) {
    operand.kind = Kind::whole;
    return operand.value = whole, true;
  }
  operand.negative = take(text, "-");
  operand.inverted = take(text, "~");
  std::string unbarred;
  if (take(text, "|")) {
    operand.absolute = true;
    const size_t bar = text.find('|');
    if (bar == std::string_view::npos) return false;
    unbarred = std::string(text.substr(0, bar)) + std::string(text.substr(bar + 1));
    text = unbarred;
  }
  return text.starts_with("c[") ? read_constant(text, operand) : read_register(text, operand);
}

Operand decode_word(std::string_view text) {
  using Reader = bool (*)(std::string_view, Operand&);
  for (const Reader read : {Reader(read_predicate), Reader(read_marked), Reader(read_address), Reader(read_real)}) {
    Operand operand;
    if (read(text, operand)) return operand;
  }
  return {};
}

void decode_operands(std::string_view text, Operation& operation) {
  text = text.substr(0, text.find("(*"));
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '[' || c == '(' || c == '{' ? 1 : c == ']' || c == ')' || c == '}' ? -1 : 0;
    if (c != ',' || (depth != 0 && at < text.size())) continue;
    const std::string_view word = trimmed(text.substr(begin, at - begin));
    begin = at + 1;
    if (!word.empty() && !word.starts_with("`(")) operation.operands.push_back(decode_operand(word));
  }
}

}  // namespace

// A computed jump's register has a number or a label behind it.
Operand decode_operand(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("SR_") || text == "SRZ") return {.kind = Kind::special, .name = text};
  if (text.starts_with("32@")) return {.kind = Kind::half_of_symbol, .inverted = text[3] == 'h', .name = text};
  if (text.size() > 1 && text[0] == 'B' && text.find_first_not_of("0123456789", 1) == std::string_view::npos) {
    return {.kind = Kind::barrier, .number = static_cast<uint8_t>(std::atoi(std::string(text.substr(1)).c_str()) & 15)};
  }
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || !text.starts_with("R")) return decode_word(text);
  Operand operand = decode_word(text.substr(0, space));
  std::string_view rest = trimmed(text.substr(space));
  take_hexadecimal(rest, operand.value);
  return operand;
}

Operation decode(const code::Instruction& instruction) {
  Operation operation;
  operation.source = &instruction;
  const std::string_view text = instruction.text;
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  const std::string_view opcode = word.substr(0, word.find('.'));
  const Row* row = row_of(opcode);
  operation.parts = parts_of(word.substr(std::min(word.size(), opcode.size() + 1)), '.');
  if (row == nullptr || (row->parts != "*" && !operation.parts.within(parts_of(row->parts, ' ')))) {
    operation.problem = std::string(word);
    return operation;
  }
  operation.run = row->run;
  operation.flow = row->flow;
  decode_operands(text.substr(word.size()), operation);
  const bool unknown = std::any_of(operation.operands.begin(), operation.operands.end(),
                                   [](const Operand& operand) { return operand.is(Kind::unknown); });
  if (unknown && row->parts != "*") operation.problem = std::string(text.substr(0, 60));
  const Kind first = operation.operands.empty() ? Kind::unknown : operation.operands[0].kind;
  operation.once = first == Kind::uniform || first == Kind::uniform_predicate;
  return operation;
}

}  // namespace reprise::sass
