#include "analyzer/code/domain/expression.h"

#include <algorithm>

namespace reprise::code {
namespace {

constexpr uint32_t kMostParts = 12;
constexpr size_t kMostExpressions = 20'000;

uint32_t little_endian(std::span<const uint8_t> bytes, uint32_t at, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count && uint64_t{at} + i < bytes.size(); ++i) {
    value |= uint32_t{bytes[at + i]} << 8 * i;
  }
  return value;
}

}  // namespace

uint32_t Expressions::make(Operation operation, uint32_t detail, ExpressionPart left, ExpressionPart right) {
  Expression made{operation, detail, left, right, 1};
  for (const ExpressionPart part : {left, right}) made.size += part.expression ? all_[part.value].size : 0;
  if (made.size > kMostParts) return 0;
  const auto found = std::find(all_.begin() + 1, all_.end(), made);
  const auto number = static_cast<uint32_t>(found - all_.begin());
  if (found != all_.end()) return number;
  if (all_.size() >= kMostExpressions) return 0;
  all_.push_back(made);
  return number;
}

uint32_t Expressions::evaluate(ExpressionPart part, std::span<const uint8_t> parameters,
                               const uint32_t block[3]) const {
  if (!part.expression) return part.value;
  const Expression& found = all_[part.value];
  if (found.operation == Operation::block_id) return block[found.detail % 3];
  const uint32_t left = evaluate(found.left, parameters, block);
  const uint32_t right = evaluate(found.right, parameters, block);
  switch (found.operation) {
    case Operation::add:
      return left + right;
    case Operation::multiply:
      return left * right;
    case Operation::load:
      return little_endian(parameters, left + right, found.detail);
    default:
      return 0;
  }
}

}  // namespace reprise::code
