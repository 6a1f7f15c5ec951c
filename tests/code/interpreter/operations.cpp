#include "tests/code/interpreter/operations.h"

#include <unordered_map>

namespace reprise::sass {
namespace {

void nothing(Context&) {}

constexpr Row kRows[] = {
#define OPERATION(opcode, function, parts) {#opcode, function, Flow::next, parts},
#define FLOW(opcode, flow, parts) {#opcode, nullptr, Flow::flow, parts},
#define NOTHING(opcode) {#opcode, nothing, Flow::next, "*"},
#include "tests/code/interpreter/operations.def"
#undef OPERATION
#undef FLOW
#undef NOTHING
};

}  // namespace

const Row* row_of(std::string_view opcode) {
  static const auto* const table = [] {
    auto* rows = new std::unordered_map<std::string_view, const Row*>;
    for (const Row& row : kRows) rows->emplace(row.name, &row);
    return rows;
  }();
  const auto found = table->find(opcode);
  return found == table->end() ? nullptr : found->second;
}

Split split(const Context& context) {
  Split found;
  while (found.sources < context.count() && (context.operand(found.sources).is(Kind::predicate) ||
                                             context.operand(found.sources).is(Kind::uniform_predicate))) {
    ++found.sources;
    ++found.results;
  }
  return found;
}

}  // namespace reprise::sass
