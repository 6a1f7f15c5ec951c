#include "analyzer/code/domain/value.h"

#include <algorithm>
#include <array>

namespace reprise::code {
namespace {

constexpr size_t kMostSums = 24;
constexpr size_t kMostTerms = 3;
constexpr uint32_t kAllBits = 0xffffffff;

size_t mix(size_t hash, size_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 31); }

size_t hash_of(const Value& value) {
  size_t hash = mix(value.sole.hash(), value.taint.hash());
  hash = mix(hash, size_t{value.number} | static_cast<size_t>(value.exactness) << 1 | size_t{value.exact} << 8);
  for (const Sum& sum : value.sums) {
    for (const Term& term : sum) hash = mix(hash, size_t{term.symbol} << 1 | size_t{term.minus});
    hash = mix(hash, sum.size());
  }
  return hash;
}

uint64_t pair_key(ValueId a, ValueId b) {
  const auto one = static_cast<uint32_t>(a);
  const auto other = static_cast<uint32_t>(b);
  return uint64_t{std::max(one, other)} << 32 | std::min(one, other);
}

bool has_pointer(const Value& value) { return !value.sole.empty() || !value.sums.empty(); }
bool may_be_zero(const Value& value) { return value.number || value.sole.has(kNullSymbol); }

std::vector<Sum> terms_of(const Value& value) {
  std::vector<Sum> terms;
  value.sole.each([&](SymbolNumber symbol) {
    if (symbol != kNullSymbol) terms.push_back({{symbol, false}});
  });
  terms.insert(terms.end(), value.sums.begin(), value.sums.end());
  return terms;
}

void taint_with(SymbolSet& taint, const Sum& sum) {
  for (const Term& term : sum) taint.add(term.symbol);
}

}  // namespace

struct ValueTable::Parts {
  SymbolSet sole = {};
  bool number = false;
  std::vector<Sum> sums = {};
  SymbolSet taint = {};
  Exactness exactness = Exactness::none;
  uint32_t exact = 0;
};

ValueTable::ValueTable() {
  intern({});
  intern({.number = true});
  constant(0);
}

ValueId ValueTable::intern(Value value) {
  const size_t hash = hash_of(value);
  const auto [begin, end] = known_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    if (all_[found->second] == value) return ValueId{found->second};
  }
  const auto number = static_cast<uint32_t>(all_.size());
  all_.push_back(std::move(value));
  known_.emplace(hash, number);
  return ValueId{number};
}

ValueId ValueTable::constant(uint32_t number) {
  return intern({.number = true, .exactness = Exactness::number, .exact = number});
}

ValueId ValueTable::symbol(Base base, bool upper) {
  return intern({.sole = SymbolSet(symbols.number(base, upper)), .exactness = Exactness::number, .exact = 0});
}

std::optional<uint32_t> ValueTable::constant_of(ValueId id) const {
  const Value& value = (*this)[id];
  if (value.exactness != Exactness::number || has_pointer(value)) return std::nullopt;
  return value.exact;
}

SymbolSet ValueTable::symbols_of(ValueId id) const {
  const Value& value = (*this)[id];
  SymbolSet all = value.sole;
  all |= value.taint;
  for (const Sum& sum : value.sums) taint_with(all, sum);
  all.remove(kNullSymbol);
  return all;
}

ValueId ValueTable::join(ValueId a, ValueId b) {
  if (a == b || b == kNothing) return a;
  if (a == kNothing) return b;
  const uint64_t key = pair_key(a, b);
  if (const auto found = joined_.find(key); found != joined_.end()) return found->second;
  const Value& one = (*this)[a];
  const Value& other = (*this)[b];
  Value made{.sole = one.sole, .number = one.number || other.number, .sums = one.sums, .taint = one.taint};
  made.sole |= other.sole;
  made.taint |= other.taint;
  for (const auto& [zero, rest] : {std::pair(a, &other), std::pair(b, &one)}) {
    if (zero != kZero || !has_pointer(*rest) || rest->number) continue;
    made.sole.add(kNullSymbol);
    made.number = false;
  }
  made.sums.insert(made.sums.end(), other.sums.begin(), other.sums.end());
  std::sort(made.sums.begin(), made.sums.end());
  made.sums.erase(std::unique(made.sums.begin(), made.sums.end()), made.sums.end());
  const bool same = one.sole == other.sole && one.number == other.number && one.sums == other.sums;
  if (same && one.exactness == other.exactness && one.exact == other.exact) {
    made.exactness = one.exactness;
    made.exact = one.exact;
  }
  const ValueId result = intern(std::move(made));
  joined_.emplace(key, result);
  return result;
}

// A value of sums; where there are too many, they become numbers.
ValueId ValueTable::make(Parts parts) {
  Value value{.sole = std::move(parts.sole),
              .number = parts.number,
              .taint = std::move(parts.taint),
              .exactness = parts.exactness,
              .exact = parts.exact};
  for (Sum& sum : parts.sums) {
    if (sum.size() == 1 && !sum[0].minus) {
      value.sole.add(sum[0].symbol);
    } else {
      value.sums.push_back(std::move(sum));
    }
  }
  std::sort(value.sums.begin(), value.sums.end());
  value.sums.erase(std::unique(value.sums.begin(), value.sums.end()), value.sums.end());
  if (value.sums.size() > kMostSums) {
    value.number = true;
    for (const Sum& sum : value.sums) taint_with(value.taint, sum);
    value.sums.clear();
  }
  if (value.exactness == Exactness::none) value.exact = 0;
  return intern(std::move(value));
}

ValueId ValueTable::negative(ValueId a) {
  if (a == kNothing) return a;
  if (const auto known = constant_of(a)) return constant(0U - *known);
  const Value& value = (*this)[a];
  Parts parts{.number = value.number, .sums = terms_of(value), .taint = value.taint};
  if (value.sole.has(kNullSymbol)) parts.sole.add(kNullSymbol);
  for (Sum& sum : parts.sums) {
    for (Term& term : sum) term.minus = !term.minus;
  }
  return make(std::move(parts));
}

ValueId ValueTable::add(ValueId a, ValueId b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kZero) return b;
  if (b == kZero) return a;
  const uint64_t key = pair_key(a, b);
  if (const auto found = added_.find(key); found != added_.end()) return found->second;
  const ValueId result = add_now(a, b);
  added_.emplace(key, result);
  return result;
}

// One alternative of each side. Two that were loaded need not be of one word: their difference is not 0 but a number.
void ValueTable::add_terms(const Sum& a, const Sum& b, Parts& parts) const {
  Sum total = a;
  bool good = true;
  for (const Term& term : b) {
    const auto same = std::find_if(total.begin(), total.end(), [&](const Term& x) { return x.symbol == term.symbol; });
    if (same == total.end()) {
      total.push_back(term);
    } else if (same->minus == term.minus) {
      good = false;  // twice the symbol
    } else {
      good = good && is_fixed(symbols.of(term.symbol).base.kind);
      total.erase(same);
    }
  }
  if (!good || total.size() > kMostTerms) {
    parts.number = true;
    taint_with(parts.taint, a);
    taint_with(parts.taint, b);
  } else if (total.empty()) {
    parts.number = true;
  } else {
    std::sort(total.begin(), total.end());
    parts.sums.push_back(std::move(total));
  }
}

ValueId ValueTable::add_now(ValueId a, ValueId b) {
  const Value one = (*this)[a];
  const Value other = (*this)[b];
  Parts parts{.number = one.number && other.number, .taint = one.taint};
  parts.taint |= other.taint;
  for (const auto& [number, rest] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    if (!may_be_zero(*number)) continue;
    parts.sole |= rest->sole;
    parts.sums.insert(parts.sums.end(), rest->sums.begin(), rest->sums.end());
  }
  const bool plain = parts.sums.empty();
  const std::vector<Sum> others = terms_of(other);
  for (const Sum& x : terms_of(one)) {
    for (const Sum& y : others) add_terms(x, y, parts);
  }
  if (one.exactness != Exactness::none && other.exactness != Exactness::none && plain && parts.sums.empty()) {
    if (one.exactness == Exactness::number && other.exactness == Exactness::number) {
      parts.exactness = Exactness::number;
      parts.exact = one.exact + other.exact;
    } else if (one.sole.empty() && other.sole.empty()) {
      const ExpressionPart left{one.exactness == Exactness::expression, one.exact};
      const ExpressionPart right{other.exactness == Exactness::expression, other.exact};
      parts.exact = expressions.make(Operation::add, 0, left, right);
      if (parts.exact != 0) parts.exactness = Exactness::expression;
    }
  }
  return make(std::move(parts));
}

ValueId ValueTable::opaque(std::span<const ValueId> of) {
  SymbolSet taint;
  for (const ValueId id : of) {
    if (id == kNothing) return kNothing;
    taint |= symbols_of(id);
  }
  return intern({.number = true, .taint = std::move(taint)});
}

ValueId ValueTable::bounded(ValueId of, ExpressionPart exact, bool known) {
  if (of == kNothing) return of;
  Value value{.number = true};
  symbols_of(of).each([&](SymbolNumber symbol) {
    if (is_loaded(symbols.of(symbol).base.kind)) value.taint.add(symbol);
  });
  if (known) {
    value.exactness = exact.expression ? Exactness::expression : Exactness::number;
    value.exact = exact.value;
  }
  return intern(std::move(value));
}

ValueId ValueTable::inexact(ValueId a) {
  Value value = (*this)[a];
  value.exactness = Exactness::none;
  value.exact = 0;
  return intern(std::move(value));
}

std::optional<ExpressionPart> ValueTable::expression_of(ValueId id) {
  const Value& value = (*this)[id];
  if (value.exactness == Exactness::none) return std::nullopt;
  if (value.sole.empty() || value.number) return ExpressionPart{value.exactness == Exactness::expression, value.exact};
  if (value.sole.size() != 1 || !value.sums.empty()) return std::nullopt;
  SymbolNumber only = kNullSymbol;
  value.sole.each([&](SymbolNumber symbol) { only = symbol; });
  const Symbol& symbol = symbols.of(only);
  const uint32_t half = symbol.upper ? 4 : 0;
  uint32_t load = 0;
  if (symbol.base.kind == BaseKind::parameter) {
    load = expressions.make(Operation::load, 4, {false, symbol.base.key + half}, {});
  } else if (symbol.base.kind == BaseKind::computed && symbols.place(symbol.base.key).index != 0) {
    const ComputedPlace& place = symbols.place(symbol.base.key);
    load = expressions.make(Operation::load, 4, {false, place.displacement + half}, {true, place.index});
  }
  if (load == 0) return std::nullopt;
  if (value.exact == 0) return ExpressionPart{true, load};
  const uint32_t sum = expressions.make(Operation::add, 0, {true, load}, {false, value.exact});
  return sum == 0 ? std::nullopt : std::optional(ExpressionPart{true, sum});
}

ValueId ValueTable::product(ValueId a, ValueId b) {
  const auto left = constant_of(a);
  const auto right = constant_of(b);
  if (left && right) return constant(*left * *right);
  for (const auto& [known, rest] : {std::pair(left, b), std::pair(right, a)}) {
    if (known == 0U) return kZero;
    if (known == 1U) return rest;
    if (known == kAllBits) return negative(rest);
  }
  const ValueId number = opaque(std::array{a, b});
  const auto x = expression_of(a);
  const auto y = expression_of(b);
  if (number == kNothing || !x || !y) return number;
  const uint32_t made = expressions.make(Operation::multiply, 0, *x, *y);
  if (made == 0) return number;
  Value value = (*this)[number];
  value.exactness = Exactness::expression;
  value.exact = made;
  return intern(std::move(value));
}

ValueId ValueTable::bitwise(uint8_t table, std::span<const ValueId, 3> operands) {
  std::array<std::optional<uint32_t>, 3> known;
  std::vector<size_t> open;
  for (size_t i = 0; i < 3; ++i) {
    known[i] = constant_of(operands[i]);
    bool matters = false;
    for (unsigned row = 0; row < 8; ++row) matters = matters || ((table >> row ^ table >> (row ^ 4U >> i)) & 1) != 0;
    if (matters && !known[i]) open.push_back(i);
  }
  if (open.size() > 1) {
    std::vector<ValueId> values;
    values.reserve(open.size());
    for (const size_t i : open) values.push_back(operands[i]);
    return opaque(values);
  }
  uint32_t same = 0;
  uint32_t opposite = 0;
  uint32_t ones = 0;
  for (unsigned bit = 0; bit < 32; ++bit) {
    std::array<unsigned, 2> out{};
    for (unsigned x = 0; x < 2; ++x) {
      unsigned row = 0;
      for (size_t i = 0; i < 3; ++i) {
        const unsigned in = !open.empty() && open[0] == i ? x : known[i].value_or(0) >> bit & 1U;
        row |= in << (2 - i);
      }
      out[x] = table >> row & 1U;
    }
    same |= uint32_t{out[1] > out[0]} << bit;
    opposite |= uint32_t{out[0] > out[1]} << bit;
    ones |= uint32_t{(out[0] & out[1]) != 0} << bit;
  }
  if (open.empty()) return constant(ones);
  const ValueId value = operands[open[0]];
  if (value == kNothing || same == kAllBits) return value;
  if (opposite == kAllBits) return inverted(value);
  if (opposite == 0 && same >> 16 == 0xffff) return inexact(value);  // aligned: the base is the same
  return (same | opposite) <= 0xffff ? bounded(value) : opaque(std::array{value});
}

}  // namespace reprise::code
