// The table of opcodes.def: what an opcode does, and which modifiers it may have. The reader of listings looks opcodes
// up; the interpreter goes by their effects.
#pragma once
#include <cstdint>
#include <string_view>

namespace reprise::code {

enum class Modifier : uint8_t {
#define MODIFIER(name, text) name,
#include "analyzer/code/listing/modifiers.def"
#undef MODIFIER
  unknown,  // the last one
};

// A set of modifiers.
class Modifiers {
 public:
  constexpr Modifiers() = default;
  constexpr void add(Modifier modifier) { bits_ |= bit(modifier); }
  constexpr bool has(Modifier modifier) const { return (bits_ & bit(modifier)) != 0; }
  constexpr bool within(const Modifiers& other) const { return (bits_ & ~other.bits_) == 0; }
  template <typename... More>
  constexpr bool any(More... modifiers) const {
    return (has(modifiers) || ...);
  }

 private:
  static constexpr unsigned __int128 bit(Modifier modifier) {
    return static_cast<unsigned __int128>(1) << static_cast<unsigned>(modifier);
  }
  unsigned __int128 bits_ = 0;
};
static_assert(static_cast<unsigned>(Modifier::unknown) < 128);

Modifier modifier_of(std::string_view text);

enum class Effect : uint8_t {
  // Registers.
  number,
  doubles,
  convert,
  matrix,
  vote,
  special,
  code_address,
  copy,
  add,
  multiply,
  scale,
  bits,
  shift,
  bytes,
  choose,
  least,
  add_least,
  load_constant,
  // Neither.
  nothing,
  dependent,
  compare,
  // Control.
  jump,
  exit,
  barrier,
  move_barrier,
  reconverge,
  call,
  give_back,
  // Memory.
  load_shared,
  store_shared,
  change_shared,
  synchronise,
  load_local,
  store_local,
  load_global,
  copy_global,
  store_global,
  change_global,
  load_generic,
  store_generic,
  change_generic,
  bulk,
  tensor,
  // No row.
  unknown,
  beyond,  // not an instruction: the end of a section
};

enum class Opcode : uint8_t {
#define OPCODE(name, effect, predicates, modifiers) name,
#define UNIFORM(name, same)
#include "analyzer/code/listing/opcodes.def"
#undef OPCODE
#undef UNIFORM
  unknown,
};

struct OpcodeRow {
  Opcode opcode = Opcode::unknown;
  Effect effect = Effect::unknown;
  uint8_t predicates = 0;
  Modifiers allowed;
  bool any = false;  // all modifiers are allowed
};

// The row of `name`, or one without effect.
OpcodeRow opcode_of(std::string_view name);

}  // namespace reprise::code
