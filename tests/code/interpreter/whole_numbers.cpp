// Operations on whole numbers, addresses and predicates.
#include <algorithm>

#include "tests/code/interpreter/operations.h"

namespace reprise::sass {
namespace {

bool is_predicate(const Operand& operand) { return operand.is(Kind::predicate) || operand.is(Kind::uniform_predicate); }

// The predicates behind the sources, as many as are there: what a carry was.
uint32_t carried(const Context& c, size_t from, uint32_t lane) {
  uint32_t sum = 0;
  for (size_t n = from; n < c.count(); ++n) {
    if (is_predicate(c.operand(n))) sum += c.truth(c.operand(n), lane) ? 1U : 0U;
  }
  return sum;
}

// A term of a sum whose carry is kept: -x is ~x + 1.
uint64_t term(const Context& c, const Operand& operand, uint32_t lane) {
  const uint32_t bits = c.bits(operand, lane);
  if (operand.piece != 0 || operand.absolute) c.refuse();
  if (operand.inverted) return static_cast<uint32_t>(~bits);
  return operand.negative ? uint64_t{static_cast<uint32_t>(~bits)} + 1 : bits;
}

template <typename T>
bool compares(const Context& c, T a, T b) {
  if (c.has(Part::LT)) return a < b;
  if (c.has(Part::LE)) return a <= b;
  if (c.has(Part::GT)) return a > b;
  if (c.has(Part::GE)) return a >= b;
  if (c.has(Part::EQ)) return a == b;
  if (c.has(Part::NE)) return a != b;
  return c.has(Part::T);
}

// With what the comparison of the lower halves said.
template <typename T>
bool compares_further(const Context& c, T a, T b, bool lower) {
  if (a == b) return lower;
  return c.has(Part::EQ) ? false : c.has(Part::NE) ? true : compares(c, a, b);
}

bool joined(const Context& c, bool a, bool b) { return c.has(Part::OR) ? a || b : c.has(Part::XOR) ? a != b : a && b; }

uint32_t by_table(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return result;
}

uint32_t least(const Context& c, uint32_t a, uint32_t b, bool minimum) {
  const bool less = c.has(Part::U32) ? a < b : static_cast<int32_t>(a) < static_cast<int32_t>(b);
  return less == minimum ? a : b;
}

}  // namespace

void mov(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    const Operand& from = c.operand(1);
    if (from.is(Kind::half_of_symbol)) {
      const size_t begin = from.name.find('+');
      const size_t end = from.name.find('@', 4);
      const auto label = begin == std::string_view::npos || end == std::string_view::npos
                             ? std::nullopt
                             : c.machine.program.listing->label(from.name.substr(begin + 2, end - begin - 2));
      if (!label) return c.refuse();
      const uint64_t place = kCode + uint64_t{*label} * 16;
      return c.set(c.operand(0), lane, static_cast<uint32_t>(from.inverted ? place >> 32 : place));
    }
    c.set(c.operand(0), lane, c.whole(from, lane));
  });
}

void iadd3(Context& c) {
  const Split s = split(c);
  if (!c.needs(s.sources + 2)) return;
  const size_t last = std::min(s.sources + 3, c.count());
  c.each([&](uint32_t lane) {
    uint64_t sum = 0;
    size_t n = s.sources;
    for (; n < last && !is_predicate(c.operand(n)); ++n) {
      if (c.has(Part::X) && c.operand(n).negative) c.refuse();
      sum += term(c, c.operand(n), lane);
    }
    if (c.has(Part::X)) sum += carried(c, n, lane);
    c.set(c.operand(0), lane, static_cast<uint32_t>(sum));
    for (size_t result = 1; result <= s.results; ++result) c.set_truth(c.operand(result), lane, sum >> 32 >= result);
  });
}

void imad(Context& c) {
  const Split s = split(c);
  if (!c.needs(s.sources + 3)) return;
  const bool wide = c.has(Part::WIDE) || c.has(Part::HI);
  const Operand& x = c.operand(s.sources);
  const Operand& y = c.operand(s.sources + 1);
  const Operand& z = c.operand(s.sources + 2);
  if (x.inverted || y.inverted || (wide && z.inverted && !c.has(Part::X)) || s.results > 1) return c.refuse();
  if (s.results == 1 && !(wide && c.has(Part::U32))) return c.refuse();
  c.each([&](uint32_t lane) {
    const uint32_t a = c.bits(x, lane);
    const uint32_t b = c.bits(y, lane);
    const uint32_t carry = c.has(Part::X) ? carried(c, s.sources + 3, lane) : 0;
    uint64_t product = c.has(Part::U32)
                           ? uint64_t{a} * b
                           : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
    if (x.negative != y.negative) product = 0 - product;
    if (!wide) return c.set(c.operand(0), lane, static_cast<uint32_t>(product) + c.whole(z, lane) + carry);
    uint64_t add = c.pair(z, lane);
    if (z.inverted) add = ~add;
    if (z.negative) add = 0 - add;
    const unsigned __int128 sum = static_cast<unsigned __int128>(product) + add + carry;
    if (c.has(Part::HI)) {
      c.set(c.operand(0), lane, static_cast<uint32_t>(sum >> 32));
    } else {
      c.set_pair(c.operand(0), lane, static_cast<uint64_t>(sum));
    }
    if (s.results == 1) c.set_truth(c.operand(1), lane, sum >> 64 != 0);
  });
}

// a << s and b; with HI what is shifted out of a, whose upper half is another operand, or its sign.
void lea(Context& c) {
  const Split s = split(c);
  const bool high = c.has(Part::HI);
  const bool has_upper = high && !c.has(Part::SX32);
  const size_t shift_at = s.sources + (has_upper ? 3 : 2);
  if (!c.needs(shift_at + 1) || !c.operand(shift_at).is(Kind::whole)) return c.refuse();
  const Operand& a = c.operand(s.sources);
  const Operand& b = c.operand(s.sources + 1);
  const uint32_t shift = c.operand(shift_at).value & 31;
  if (high && (a.negative || a.inverted)) return c.refuse();
  if (c.has(Part::X) && (a.negative || b.negative)) return c.refuse();
  c.each([&](uint32_t lane) {
    uint64_t first = c.bits(a, lane);
    if (has_upper) first |= uint64_t{c.bits(c.operand(s.sources + 2), lane)} << 32;
    if (c.has(Part::SX32)) first = static_cast<uint64_t>(int64_t{static_cast<int32_t>(first)});
    first = static_cast<uint32_t>(high ? first << shift >> 32 : first << shift);
    if (a.inverted) first = static_cast<uint32_t>(~first);
    if (a.negative) first = uint64_t{static_cast<uint32_t>(~first)} + 1;
    const uint64_t sum = first + term(c, b, lane) + (c.has(Part::X) ? carried(c, shift_at + 1, lane) : 0);
    c.set(c.operand(0), lane, static_cast<uint32_t>(sum));
    if (s.results > 0) c.set_truth(c.operand(1), lane, sum >> 32 != 0);
  });
}

// With a predicate in front of the register: whether the result is not 0.
void lop3(Context& c) {
  const bool tells = c.count() > 0 && is_predicate(c.operand(0));
  const size_t at = tells ? 1 : 0;
  if (!c.needs(at + 5)) return;
  c.each([&](uint32_t lane) {
    const uint32_t result = by_table(c.whole(c.operand(at + 1), lane), c.whole(c.operand(at + 2), lane),
                                     c.whole(c.operand(at + 3), lane), c.operand(at + 4).value);
    const bool with = c.count() > at + 5 && c.truth(c.operand(at + 5), lane);
    c.set(c.operand(at), lane, result);
    if (tells) c.set_truth(c.operand(0), lane, c.has(Part::PAND) ? result != 0 && with : result != 0 || with);
  });
}

void shf(Context& c) {
  if (!c.needs(4)) return;
  const bool whole_words = c.has(Part::U64) || c.has(Part::S64);
  const uint32_t most = whole_words ? 64 : 32;
  c.each([&](uint32_t lane) {
    const uint64_t value = c.bits(c.operand(1), lane) | uint64_t{c.bits(c.operand(3), lane)} << 32;
    uint32_t shift = c.whole(c.operand(2), lane);
    shift = c.has(Part::W) ? shift & (most - 1) : std::min(shift, most);
    uint64_t result = 0;
    if (c.has(Part::L)) {
      result = shift > 63 ? 0 : value << shift;
    } else if (c.has(Part::S32) || c.has(Part::S64)) {
      result = static_cast<uint64_t>(static_cast<int64_t>(value) >> std::min(shift, 63U));
    } else {
      result = shift > 63 ? 0 : value >> shift;
    }
    c.set(c.operand(0), lane, static_cast<uint32_t>(c.has(Part::HI) ? result >> 32 : result));
  });
}

void prmt(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    const uint64_t value = c.whole(c.operand(1), lane) | uint64_t{c.whole(c.operand(3), lane)} << 32;
    const uint32_t choice = c.whole(c.operand(2), lane);
    uint32_t result = 0;
    for (uint32_t byte = 0; byte < 4; ++byte) {
      const uint32_t which = choice >> 4 * byte;
      uint32_t one = static_cast<uint32_t>(value >> 8 * (which & 7)) & 0xff;
      if ((which & 8) != 0) one = (one & 0x80) != 0 ? 0xff : 0;
      result |= one << 8 * byte;
    }
    c.set(c.operand(0), lane, result);
  });
}

void sel(Context& c) {
  if (!c.needs(4)) return;
  c.each(
      [&](uint32_t lane) { c.set(c.operand(0), lane, c.whole(c.operand(c.truth(c.operand(3), lane) ? 1 : 2), lane)); });
}

void imnmx(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    c.set(c.operand(0), lane,
          least(c, c.whole(c.operand(1), lane), c.whole(c.operand(2), lane), c.truth(c.operand(3), lane)));
  });
}

void viaddmnmx(Context& c) {
  if (!c.needs(5)) return;
  c.each([&](uint32_t lane) {
    uint32_t result = least(c, c.whole(c.operand(1), lane) + c.whole(c.operand(2), lane), c.whole(c.operand(3), lane),
                            c.truth(c.operand(4), lane));
    if (c.has(Part::RELU) && static_cast<int32_t>(result) < 0) result = 0;
    c.set(c.operand(0), lane, result);
  });
}

void iabs(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    const uint32_t value = c.whole(c.operand(1), lane);
    c.set(c.operand(0), lane, value >> 31 != 0 ? 0 - value : value);
  });
}

void brev(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    const uint32_t value = c.whole(c.operand(1), lane);
    uint32_t result = 0;
    for (uint32_t bit = 0; bit < 32; ++bit) result |= (value >> bit & 1) << (31 - bit);
    c.set(c.operand(0), lane, result);
  });
}

// Where the highest bit is that is not as the sign.
void flo(Context& c) {
  const Split s = split(c);
  if (!c.needs(s.sources + 1) || s.results > 0) return c.refuse();
  c.each([&](uint32_t lane) {
    uint32_t value = c.whole(c.operand(1), lane);
    if (!c.has(Part::U32) && value >> 31 != 0) value = ~value;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(value));
    c.set(c.operand(0), lane, value == 0 ? ~0U : c.has(Part::SH) ? zeros : 31 - zeros);
  });
}

void popc(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    c.set(c.operand(0), lane, static_cast<uint32_t>(std::popcount(c.whole(c.operand(1), lane))));
  });
}

void sgxt(Context& c) {
  if (!c.needs(3)) return;
  c.each([&](uint32_t lane) {
    const uint32_t value = c.whole(c.operand(1), lane);
    const uint32_t bits = std::min(c.whole(c.operand(2), lane), 32U);
    const uint32_t away = 32 - bits;
    const uint32_t kept = bits == 0 ? 0 : value << away;
    const uint32_t plain = bits == 0 ? 0 : kept >> away;
    const auto extended = static_cast<uint32_t>(static_cast<int32_t>(kept) >> std::min(away, 31U));
    c.set(c.operand(0), lane, c.has(Part::U32) ? plain : extended);
  });
}

void bmsk(Context& c) {
  if (!c.needs(3)) return;
  c.each([&](uint32_t lane) {
    const uint32_t from = c.whole(c.operand(1), lane);
    const uint32_t bits = c.whole(c.operand(2), lane);
    const uint64_t ones = bits >= 32 ? 0xffffffffULL : (uint64_t{1} << bits) - 1;
    c.set(c.operand(0), lane, from >= 32 ? 0 : static_cast<uint32_t>(ones << from));
  });
}

void isetp(Context& c) {
  if (!c.needs(5)) return;
  const bool further = c.has(Part::EX);
  if (further && !c.needs(6)) return;
  c.each([&](uint32_t lane) {
    const uint32_t a = c.whole(c.operand(2), lane);
    const uint32_t b = c.whole(c.operand(3), lane);
    const auto x = static_cast<int32_t>(a);
    const auto y = static_cast<int32_t>(b);
    const bool lower = further && c.truth(c.operand(5), lane);
    const bool with = c.truth(c.operand(4), lane);
    const bool result = further ? c.has(Part::U32) ? compares_further(c, a, b, lower) : compares_further(c, x, y, lower)
                        : c.has(Part::U32) ? compares(c, a, b)
                                           : compares(c, x, y);
    c.set_truth(c.operand(0), lane, joined(c, result, with));
    c.set_truth(c.operand(1), lane, joined(c, !result, with));
  });
}

void plop3(Context& c) {
  if (!c.needs(7)) return;
  c.each([&](uint32_t lane) {
    uint32_t row = 0;
    for (size_t n = 2; n < 5; ++n) row = row << 1 | (c.truth(c.operand(n), lane) ? 1U : 0U);
    c.set_truth(c.operand(0), lane, (c.operand(5).value >> row & 1) != 0);
    c.set_truth(c.operand(1), lane, (c.operand(6).value >> row & 1) != 0);
  });
}

void p2r(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    uint32_t bits = 0;
    for (uint32_t n = 0; n < kTruth; ++n) bits |= (c.warp.p[n] >> lane & 1) << n;
    const uint32_t mask = c.whole(c.operand(3), lane);
    c.set(c.operand(0), lane, (c.whole(c.operand(2), lane) & ~mask) | (bits & mask));
  });
}

void r2p(Context& c) {
  if (!c.needs(3)) return;
  c.each([&](uint32_t lane) {
    const uint32_t value = c.whole(c.operand(1), lane);
    const uint32_t mask = c.whole(c.operand(2), lane);
    for (uint8_t n = 0; n < kTruth; ++n) {
      if ((mask >> n & 1) != 0) c.set_truth({.kind = Kind::predicate, .number = n}, lane, (value >> n & 1) != 0);
    }
  });
}

}  // namespace reprise::sass
