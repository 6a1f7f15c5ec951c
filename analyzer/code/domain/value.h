// What is known of a 32-bit register: which alternatives its value has. An alternative is a sum of symbols, each once
// and with a sign, plus some number. Equal values have the same number, so that states compare fast and sums are
// computed once. Callers: the interpreter.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyzer/code/domain/expression.h"
#include "analyzer/code/domain/symbol.h"

namespace reprise::code {

struct Term {
  SymbolNumber symbol = 0;
  bool minus = false;

  bool operator==(const Term&) const = default;
  bool operator<(const Term& other) const { return std::tie(symbol, minus) < std::tie(other.symbol, other.minus); }
};

// In order of the symbols; two or three of them, or one with a minus.
using Sum = std::vector<Term>;

enum class Exactness : uint8_t { none, number, expression };

struct Value {
  SymbolSet sole = {};                    // that alone, plus a number, may be the value
  bool number = false;                    // it may be a number without a symbol
  std::vector<Sum> sums = {};             // other alternatives, in order
  SymbolSet taint = {};                   // what went into the numbers
  Exactness exactness = Exactness::none;  // the number of the only alternative is known
  uint32_t exact = 0;

  bool operator==(const Value&) const = default;
  bool alone() const { return sums.empty() && taint.empty(); }
};

enum class ValueId : uint32_t {};

class ValueTable {
 public:
  ValueTable();

  static constexpr ValueId kNothing{0};  // no value comes here
  static constexpr ValueId kNumber{1};   // a number of which nothing is known
  static constexpr ValueId kZero{2};

  const Value& operator[](ValueId id) const { return all_[static_cast<uint32_t>(id)]; }
  size_t size() const { return all_.size(); }

  ValueId intern(Value value);
  ValueId constant(uint32_t number);
  ValueId symbol(Base base, bool upper);
  std::optional<uint32_t> constant_of(ValueId id) const;
  // All symbols that it is made of.
  SymbolSet symbols_of(ValueId id) const;

  // Either of the two.
  ValueId join(ValueId a, ValueId b);
  ValueId add(ValueId a, ValueId b);
  ValueId negative(ValueId a);
  ValueId inverted(ValueId a) { return add(negative(a), constant(0xffffffff)); }
  // A number computed from `of`; it keeps their taint.
  ValueId opaque(std::span<const ValueId> of);
  // The same, of at most 16 bits: it tells no address of the launch.
  ValueId bounded(ValueId of, ExpressionPart exact = {}, bool known = false);
  // Without what is known of the number that is added: a carry may come to it.
  ValueId inexact(ValueId a);
  ValueId product(ValueId a, ValueId b);
  // Each bit of the result as `table` has it of three operands' bits.
  ValueId bitwise(uint8_t table, std::span<const ValueId, 3> operands);
  // The number, where it is known for a launch; it may be of a parameter's value.
  std::optional<ExpressionPart> expression_of(ValueId id);

  Symbols symbols;
  Expressions expressions;

 private:
  struct Parts;
  ValueId add_now(ValueId a, ValueId b);
  ValueId make(Parts parts);
  void add_terms(const Sum& a, const Sum& b, Parts& parts) const;

  std::vector<Value> all_;
  std::unordered_multimap<size_t, uint32_t> known_;
  std::unordered_map<uint64_t, ValueId> joined_;
  std::unordered_map<uint64_t, ValueId> added_;
};

}  // namespace reprise::code
