#include "analyzer/code/listing/opcodes.h"

#include <array>
#include <unordered_map>

namespace reprise::code {
namespace {

constexpr std::array kModifiers = {
#define MODIFIER(name, text) std::string_view(text),
#include "analyzer/code/listing/modifiers.def"
#undef MODIFIER
};

constexpr Modifier find_modifier(std::string_view text) {
  for (size_t i = 0; i < kModifiers.size(); ++i) {
    if (kModifiers[i] == text) return static_cast<Modifier>(i);
  }
  return Modifier::unknown;
}

struct NamedRow {
  std::string_view name;
  OpcodeRow row;
};

constexpr OpcodeRow make_row(Opcode opcode, Effect effect, uint8_t predicates, std::string_view modifiers) {
  OpcodeRow row{opcode, effect, predicates, {}, modifiers == "*"};
  while (!row.any && !modifiers.empty()) {
    const std::string_view word = modifiers.substr(0, modifiers.find(' '));
    modifiers.remove_prefix(word.size() < modifiers.size() ? word.size() + 1 : word.size());
    const Modifier modifier = find_modifier(word);
    if (modifier == Modifier::unknown) throw "opcodes.def has a modifier that modifiers.def lacks";  // at compile time
    row.allowed.add(modifier);
  }
  return row;
}

constexpr std::array kRows = {
#define OPCODE(name, effect, predicates, modifiers) \
  NamedRow{#name, make_row(Opcode::name, Effect::effect, predicates, modifiers)},
#define UNIFORM(name, same)
#include "analyzer/code/listing/opcodes.def"
#undef OPCODE
#undef UNIFORM
};

struct Twin {
  std::string_view name;
  Opcode same;
};
constexpr Twin kTwins[] = {
#define OPCODE(name, effect, predicates, modifiers)
#define UNIFORM(name, same) {#name, Opcode::same},
#include "analyzer/code/listing/opcodes.def"
#undef OPCODE
#undef UNIFORM
};

using Table = std::unordered_map<std::string_view, OpcodeRow>;

const Table& table() {
  static const Table* const made = [] {
    auto* rows = new Table;
    for (const NamedRow& row : kRows) rows->emplace(row.name, row.row);
    for (const Twin& twin : kTwins) rows->emplace(twin.name, kRows[static_cast<size_t>(twin.same)].row);
    return rows;
  }();
  return *made;
}

}  // namespace

Modifier modifier_of(std::string_view text) { return find_modifier(text); }

OpcodeRow opcode_of(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? OpcodeRow{} : found->second;
}

}  // namespace reprise::code
