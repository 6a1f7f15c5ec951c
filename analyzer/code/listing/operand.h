// One operand of a machine instruction, as nvdisasm writes it. The reader of listings makes them; the interpreter asks
// what they are. Text that has no known form is `unknown`, and an instruction that needs such an operand tells nothing.
#pragma once
#include <cstdint>
#include <string_view>

namespace reprise::code {

// A place among the registers of a thread: R0 to R254, then uniform registers, then barriers.
using Register = uint16_t;
inline constexpr Register kUniform = 256;
inline constexpr Register kUniforms = 64;
inline constexpr Register kBarrier = kUniform + kUniforms;
inline constexpr Register kBarriers = 16;
inline constexpr Register kRegisters = kBarrier + kBarriers;
inline constexpr Register kZero = 0xfffe;  // RZ and URZ: reads as 0, keeps nothing
inline constexpr Register kNoRegister = 0xffff;
constexpr bool is_uniform(Register r) { return r >= kUniform && r < kBarrier; }
constexpr bool holds(Register r) { return r < kRegisters; }

// P0 to P6 and UP0 to UP6 by number; what is always true has none.
using Predicate = uint8_t;
inline constexpr Predicate kUniformPredicate = 8;
inline constexpr Predicate kTrue = 0xff;
inline constexpr Predicate kAllPredicates = 0xfe;  // PR: all of a thread's at once

enum class OperandKind : uint8_t {
  unknown,
  registers,
  constant,   // c[bank][register + displacement]
  immediate,  // a whole number
  number,     // something that is no address: a floating-point literal, a descriptor
  address,    // [register + register + displacement]
  predicate,
  special,  // SR_TID.X
  half,     // 32@lo(symbol), 32@hi(symbol)
};

enum class Sign : uint8_t { plain, negative, inverted, part };     // part: |R0|, R0.H0_H0: some number made of it
enum class AddressForm : uint8_t { plain, wide, narrow, scaled };  // [R2], [R2.64], [R2.U32], [R2.X4]

struct CodeOperand {
  OperandKind kind = OperandKind::unknown;
  Sign sign = Sign::plain;
  bool negated = false;                   // !P0
  AddressForm form = AddressForm::plain;  // of the address's first register
  uint8_t bank = 0;
  bool upper = false;  // of a half
  Predicate predicate = kTrue;
  Register reg = kNoRegister;     // a register, or the one that a constant or address begins with
  Register second = kNoRegister;  // that an address adds
  uint32_t value = 0;             // an immediate, or a displacement
  std::string_view name = {};     // a special register, or the symbol of a half

  bool is(OperandKind which) const { return kind == which; }
};

CodeOperand read_operand(std::string_view text);

}  // namespace reprise::code
