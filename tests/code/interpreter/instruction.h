// Machine instructions as the interpreter of tests runs them: decoded from the text of a listing by a reader of its
// own, so that an error of the analysis is not the interpreter's, too. Callers: the operations; the block that runs
// them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/code/listing/listing.h"

namespace reprise::sass {

enum class Part : uint8_t {
#define PART(name, text) name,
#include "tests/code/interpreter/parts.def"
#undef PART
  unknown,  // the last one
};

// What stands behind the dots of an opcode.
class Parts {
 public:
  void add(Part part) { (static_cast<unsigned>(part) < 64 ? low_ : high_) |= bit(part); }
  bool has(Part part) const { return ((static_cast<unsigned>(part) < 64 ? low_ : high_) & bit(part)) != 0; }
  template <typename... More>
  bool any(More... parts) const {
    return (has(parts) || ...);
  }
  bool within(const Parts& other) const { return (low_ & ~other.low_) == 0 && (high_ & ~other.high_) == 0; }

 private:
  static uint64_t bit(Part part) { return uint64_t{1} << (static_cast<unsigned>(part) % 64); }
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

enum class Kind : uint8_t {
  unknown,
  reg,
  uniform,
  predicate,
  uniform_predicate,
  barrier,
  constant,
  whole,
  real,
  address,
  special,
  half_of_symbol
};

inline constexpr uint8_t kZeroRegister = 255;
inline constexpr uint8_t kZeroUniform = 63;
inline constexpr uint8_t kTruth = 7;       // PT
inline constexpr uint8_t kPredicates = 8;  // PR: all of them

struct Operand {
  Kind kind = Kind::unknown;
  uint8_t number = 0;  // of the register, predicate or barrier; of an address or a constant: the register in it
  bool negative = false;
  bool absolute = false;
  bool inverted = false;
  uint8_t piece = 0;               // .H0_H0, .H1_H1: 1, 2; .B0 to .B3: 3 to 6
  bool by_uniform = false;         // a constant's register is uniform
  uint8_t uniform = kZeroUniform;  // that an address adds
  bool narrow = false;             // [R2.U32+UR4]
  bool wide = false;               // [R2.64]
  uint8_t shift = 0;               // [R2.X4]
  uint8_t bank = 0;
  uint32_t value = 0;  // a whole number, or a displacement
  double real = 0;
  std::string_view name = {};

  bool is(Kind which) const { return kind == which; }
};

struct Machine;
struct Context;
using Run = void (*)(Context&);

// What changes the flow of control, which the warp does itself.
enum class Flow : uint8_t { next, branch, computed_branch, leave, open, meet, detach, gather, block, call, give_back };

struct Operation {
  const code::Instruction* source = nullptr;
  Run run = nullptr;
  Flow flow = Flow::next;
  bool once = false;  // for the warp, not for each of its threads
  Parts parts;
  std::vector<Operand> operands;
  std::string problem;  // why it cannot be run
};

struct Row {
  std::string_view name;
  Run run;
  Flow flow;
  std::string_view parts;  // "*": all
};
const Row* row_of(std::string_view opcode);

Operand decode_operand(std::string_view text);
Operation decode(const code::Instruction& instruction);

}  // namespace reprise::sass
