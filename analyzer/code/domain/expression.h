// Numbers that a launch decides: made of parameters and block ids, as far as they are needed to find parameter words at
// computed offsets. Callers: the domain of values; the evaluation at a launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reprise::code {

enum class Operation : uint8_t { none, block_id, load, add, multiply };

// A part is a number of its own, or another expression.
struct ExpressionPart {
  bool expression = false;
  uint32_t value = 0;

  bool operator==(const ExpressionPart&) const = default;
};

struct Expression {
  Operation operation = Operation::none;
  uint32_t detail = 0;   // block_id: the axis; load: bytes
  ExpressionPart left;   // load: the displacement
  ExpressionPart right;  // load: the index
  uint32_t size = 1;

  bool operator==(const Expression&) const = default;
};

class Expressions {
 public:
  Expressions() { all_.emplace_back(); }

  // Its number; 0, which is no expression, where it would be too large.
  uint32_t make(Operation operation, uint32_t detail, ExpressionPart left, ExpressionPart right);
  const Expression& at(uint32_t number) const { return all_[number]; }
  // Its value in a launch with these parameters and this block; words beyond the parameters are 0.
  uint32_t evaluate(ExpressionPart part, std::span<const uint8_t> parameters, const uint32_t block[3]) const;

 private:
  std::vector<Expression> all_;
};

}  // namespace reprise::code
