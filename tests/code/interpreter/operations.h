// The functions behind the rows of operations.def. Callers: the table of rows.
#pragma once
#include "tests/code/interpreter/machine.h"

namespace reprise::sass {

#define OPERATION(opcode, function, parts) void function(Context& context);
#define FLOW(opcode, flow, parts)
#define NOTHING(opcode)
#include "tests/code/interpreter/operations.def"
#undef OPERATION
#undef FLOW
#undef NOTHING

// 16 bits to 32, and back.
float from_half(uint32_t bits);
uint32_t to_half(float value);
float from_brain(uint32_t bits);
uint32_t to_brain(float value);

// What an instruction's predicates are: the first that are written, and the rest.
struct Split {
  size_t results = 0;  // operands that are predicates, right behind the first one
  size_t sources = 1;  // where the first source is
};
Split split(const Context& context);

}  // namespace reprise::sass
