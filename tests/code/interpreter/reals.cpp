// Operations on floating-point numbers, by the host's arithmetic: nearly what a device gives, which is enough for what
// addresses depend on. Functions of MUFU are more exact here than there.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/code/interpreter/operations.h"

namespace reprise::sass {
namespace {

// The host rounds as the instruction wants, as long as one of these lives.
class Rounding {
 public:
  explicit Rounding(const Context& c) {
    if (c.has(Part::RM)) std::fesetround(FE_DOWNWARD);
    if (c.has(Part::RP)) std::fesetround(FE_UPWARD);
    if (c.has(Part::RZ)) std::fesetround(FE_TOWARDZERO);
  }
  ~Rounding() { std::fesetround(FE_TONEAREST); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
};

uint32_t finished(const Context& c, float value) {
  if (c.has(Part::SAT)) value = value > 0 ? std::min(value, 1.0F) : 0.0F;
  if (c.has(Part::FTZ) && std::fpclassify(value) == FP_SUBNORMAL) value = std::copysign(0.0F, value);
  return std::bit_cast<uint32_t>(value);
}

template <typename T>
bool ordered(const Context& c, T a, T b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (c.has(Part::NUM)) return !unordered;
  if (c.has(Part::NaN)) return unordered;
  if (c.has(Part::T) || c.has(Part::F)) return c.has(Part::T);
  if (unordered) return c.operation.parts.any(Part::LTU, Part::LEU, Part::GTU, Part::GEU, Part::EQU, Part::NEU);
  if (c.operation.parts.any(Part::LT, Part::LTU)) return a < b;
  if (c.operation.parts.any(Part::LE, Part::LEU)) return a <= b;
  if (c.operation.parts.any(Part::GT, Part::GTU)) return a > b;
  if (c.operation.parts.any(Part::GE, Part::GEU)) return a >= b;
  return c.operation.parts.any(Part::EQ, Part::EQU) ? a == b : a != b;
}

bool joined(const Context& c, bool a, bool b) { return c.has(Part::OR) ? a || b : c.has(Part::XOR) ? a != b : a && b; }

template <typename T>
T least(const Context& c, T a, T b, bool minimum) {
  if (std::isnan(a) || std::isnan(b)) {
    if (c.has(Part::NaN)) return std::numeric_limits<T>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) == minimum ? a : b;
  return (a < b) == minimum ? a : b;
}

// To a whole number, and within bounds.
template <typename T>
uint64_t bounded(double value) {
  if (std::isnan(value)) return sizeof(T) == 8 ? uint64_t{1} << 63 : 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return static_cast<uint64_t>(std::numeric_limits<T>::min());
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return static_cast<uint64_t>(std::numeric_limits<T>::max());
  return static_cast<uint64_t>(static_cast<T>(value));
}

double rounded(const Context& c, double value) {
  if (c.has(Part::TRUNC)) return std::trunc(value);
  if (c.has(Part::FLOOR)) return std::floor(value);
  return c.has(Part::CEIL) ? std::ceil(value) : std::nearbyint(value);
}

// Of two halves of a register.
float half_of(const Context& c, const Operand& operand, uint32_t lane, uint32_t half) {
  const bool brain = c.has(Part::BF16_V2);
  if (operand.is(Kind::real)) return static_cast<float>(operand.real);
  if (operand.inverted || operand.piece > 2) c.refuse();
  const uint32_t which = operand.piece == 0 ? half : operand.piece - 1;
  const uint32_t bits = c.bits(operand, lane) >> 16 * which & 0xffff;
  float value = brain ? from_brain(bits) : from_half(bits);
  if (operand.absolute) value = std::fabs(value);
  return operand.negative ? -value : value;
}

uint32_t packed(const Context& c, float low, float high) {
  const bool brain = c.has(Part::BF16_V2);
  const auto to = brain ? to_brain : to_half;
  return to(low) | to(high) << 16;
}

// A number that stands for two has the upper one first.
struct Pairs {
  std::vector<const Operand*> low;
  std::vector<const Operand*> high;
};
Pairs pairs(const Context& c) {
  Pairs found;
  for (size_t n = 1; n < c.count(); ++n) {
    const bool two = c.operand(n).is(Kind::real) && n + 1 < c.count() && c.operand(n + 1).is(Kind::real);
    found.high.push_back(&c.operand(n));
    found.low.push_back(&c.operand(two ? ++n : n));
  }
  return found;
}

template <typename Do>
void on_halves(Context& c, size_t sources, const Do& act) {
  const Pairs p = pairs(c);
  if (p.low.size() != sources) return c.refuse();
  c.each([&](uint32_t lane) {
    float result[2];
    for (uint32_t half = 0; half < 2; ++half) {
      float in[3] = {};
      for (size_t n = 0; n < sources; ++n) in[n] = half_of(c, half == 0 ? *p.low[n] : *p.high[n], lane, half);
      result[half] = act(in);
    }
    c.set(c.operand(0), lane, c.has(Part::F32) ? std::bit_cast<uint32_t>(result[0]) : packed(c, result[0], result[1]));
  });
}

double root(double value) { return 1 / std::sqrt(value); }

float function(const Context& c, float x) {
  constexpr double kTurn = 6.283185307179586;
  const double value = x;
  if (c.has(Part::RCP)) return static_cast<float>(1 / value);
  if (c.has(Part::RSQ)) return static_cast<float>(root(value));
  if (c.has(Part::SQRT)) return static_cast<float>(std::sqrt(value));
  if (c.has(Part::EX2)) return static_cast<float>(std::exp2(value));
  if (c.has(Part::LG2)) return static_cast<float>(std::log2(value));
  if (c.has(Part::TANH)) return static_cast<float>(std::tanh(value));
  return static_cast<float>(c.has(Part::SIN) ? std::sin(value * kTurn) : std::cos(value * kTurn));
}

template <typename Do>
void on_floats(Context& c, size_t sources, const Do& act) {
  if (!c.needs(sources + 1)) return;
  const Rounding rounding(c);
  c.each([&](uint32_t lane) {
    volatile float in[3] = {};
    for (size_t n = 0; n < sources; ++n) in[n] = c.real(c.operand(n + 1), lane);
    c.set(c.operand(0), lane, finished(c, act(in)));
  });
}

template <typename Do>
void on_doubles(Context& c, size_t sources, const Do& act) {
  if (!c.needs(sources + 1)) return;
  const Rounding rounding(c);
  c.each([&](uint32_t lane) {
    volatile double in[3] = {};
    for (size_t n = 0; n < sources; ++n) in[n] = c.twice(c.operand(n + 1), lane);
    c.set_pair(c.operand(0), lane, std::bit_cast<uint64_t>(double{act(in)}));
  });
}

}  // namespace

float from_half(uint32_t bits) {
  const auto exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<float>(bits & 1023);
  float value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits >> 15 & 1) != 0 ? -value : value;
}

uint32_t to_half(float value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int scale = std::max(exponent - 1, -14);
  const auto fraction = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - scale)));
  return sign | (fraction < 1024 ? fraction : (static_cast<uint32_t>(scale + 15) << 10) + fraction - 1024);
}

float from_brain(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

uint32_t to_brain(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

void fadd(Context& c) {
  on_floats(c, 2, [](auto& in) { return in[0] + in[1]; });
}
void fmul(Context& c) {
  on_floats(c, 2, [](auto& in) { return in[0] * in[1]; });
}
void ffma(Context& c) {
  on_floats(c, 3, [](auto& in) { return std::fma(float{in[0]}, float{in[1]}, float{in[2]}); });
}
void dadd(Context& c) {
  on_doubles(c, 2, [](auto& in) { return in[0] + in[1]; });
}
void dmul(Context& c) {
  on_doubles(c, 2, [](auto& in) { return in[0] * in[1]; });
}
void dfma(Context& c) {
  on_doubles(c, 3, [](auto& in) { return std::fma(double{in[0]}, double{in[1]}, double{in[2]}); });
}

void fmnmx(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    c.set(c.operand(0), lane,
          finished(c, least(c, c.real(c.operand(1), lane), c.real(c.operand(2), lane), c.truth(c.operand(3), lane))));
  });
}

void dmnmx(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    const double result =
        least(c, c.twice(c.operand(1), lane), c.twice(c.operand(2), lane), c.truth(c.operand(3), lane));
    c.set_pair(c.operand(0), lane, std::bit_cast<uint64_t>(result));
  });
}

// Also moves addresses: all bits stay.
void fsel(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    const Operand& from = c.operand(c.truth(c.operand(3), lane) ? 1 : 2);
    uint32_t bits = c.bits(from, lane);
    if (from.absolute) bits &= 0x7fffffff;
    if (from.negative) bits ^= 0x80000000;
    c.set(c.operand(0), lane, bits);
  });
}

void fsetp(Context& c) {
  if (!c.needs(5)) return;
  c.each([&](uint32_t lane) {
    const bool with = c.truth(c.operand(4), lane);
    const bool result = ordered(c, c.real(c.operand(2), lane), c.real(c.operand(3), lane));
    c.set_truth(c.operand(0), lane, joined(c, result, with));
    c.set_truth(c.operand(1), lane, joined(c, !result, with));
  });
}

void dsetp(Context& c) {
  if (!c.needs(5)) return;
  c.each([&](uint32_t lane) {
    const bool with = c.truth(c.operand(4), lane);
    const bool result = ordered(c, c.twice(c.operand(2), lane), c.twice(c.operand(3), lane));
    c.set_truth(c.operand(0), lane, joined(c, result, with));
    c.set_truth(c.operand(1), lane, joined(c, !result, with));
  });
}

void fset(Context& c) {
  if (!c.needs(4)) return;
  c.each([&](uint32_t lane) {
    const bool result =
        joined(c, ordered(c, c.real(c.operand(1), lane), c.real(c.operand(2), lane)), c.truth(c.operand(3), lane));
    c.set(c.operand(0), lane, !result ? 0 : c.has(Part::BF) ? 0x3f800000 : 0xffffffff);
  });
}

void mufu(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    if (!c.has(Part::RCP64H) && !c.has(Part::RSQ64H)) {
      return c.set(c.operand(0), lane, std::bit_cast<uint32_t>(function(c, c.real(c.operand(1), lane))));
    }
    const double value = std::bit_cast<double>(uint64_t{std::bit_cast<uint32_t>(c.real(c.operand(1), lane))} << 32);
    const double result = c.has(Part::RCP64H) ? 1 / value : root(value);
    c.set(c.operand(0), lane, static_cast<uint32_t>(std::bit_cast<uint64_t>(result) >> 32));
  });
}

// Whether a quotient needs the slow way, which is right for all.
void fchk(Context& c) {
  if (!c.needs(3)) return;
  c.each([&](uint32_t lane) {
    const float a = c.real(c.operand(1), lane);
    const float b = c.real(c.operand(2), lane);
    const auto middle = [](float x) { return std::fabs(x) > 1e-18F && std::fabs(x) < 1e18F; };
    c.set_truth(c.operand(0), lane, !middle(a) || !middle(b));
  });
}

void f2i(Context& c) {
  if (!c.needs(2)) return;
  const bool wide = c.has(Part::U64) || c.has(Part::S64);
  c.each([&](uint32_t lane) {
    const double from = c.has(Part::F64) ? c.twice(c.operand(1), lane) : double{c.real(c.operand(1), lane)};
    const double value = rounded(c, from);
    const uint64_t result = c.has(Part::U64)   ? bounded<uint64_t>(value)
                            : c.has(Part::S64) ? bounded<int64_t>(value)
                            : c.has(Part::U32) ? bounded<uint32_t>(value)
                            : c.has(Part::U16) ? bounded<uint16_t>(value)
                            : c.has(Part::S16) ? bounded<int16_t>(value)
                                               : bounded<int32_t>(value);
    if (wide) return c.set_pair(c.operand(0), lane, result);
    c.set(c.operand(0), lane, static_cast<uint32_t>(result));
  });
}

void i2f(Context& c) {
  if (!c.needs(2)) return;
  const Rounding rounding(c);
  c.each([&](uint32_t lane) {
    const Operand& from = c.operand(1);
    const uint32_t bits = c.has(Part::U64) || c.has(Part::S64) ? 0 : c.whole(from, lane);
    volatile int64_t value = static_cast<int32_t>(bits);
    if (c.has(Part::U32)) value = bits;
    if (c.has(Part::U16)) value = bits & 0xffff;
    if (c.has(Part::S16)) value = static_cast<int16_t>(bits);
    if (c.has(Part::U8)) value = bits & 0xff;
    if (c.has(Part::S8)) value = static_cast<int8_t>(bits);
    if (c.has(Part::S64)) value = static_cast<int64_t>(c.pair(from, lane));
    volatile uint64_t large = c.has(Part::U64) ? c.pair(from, lane) : 0;
    if (c.has(Part::F64)) {
      const double result = c.has(Part::U64) ? static_cast<double>(large) : static_cast<double>(value);
      return c.set_pair(c.operand(0), lane, std::bit_cast<uint64_t>(result));
    }
    const float result = c.has(Part::U64) ? static_cast<float>(large) : static_cast<float>(value);
    c.set(c.operand(0), lane, std::bit_cast<uint32_t>(result));
  });
}

// Between sizes; the opcode says first what it makes.
void f2f(Context& c) {
  if (!c.needs(2)) return;
  const std::string_view text = c.operation.source->text;
  const bool to_double = text.starts_with("F2F.F64") || text.starts_with("F2F.FTZ.F64");
  c.each([&](uint32_t lane) {
    if (to_double && c.has(Part::F32)) {
      const double result = c.real(c.operand(1), lane);
      return c.set_pair(c.operand(0), lane, std::bit_cast<uint64_t>(result));
    }
    if (to_double) return c.refuse();
    const auto from = c.has(Part::F64) ? static_cast<float>(c.twice(c.operand(1), lane)) : c.real(c.operand(1), lane);
    const uint32_t bits = c.has(Part::F16)    ? to_half(from)
                          : c.has(Part::BF16) ? to_brain(from)
                                              : std::bit_cast<uint32_t>(from);
    c.set(c.operand(0), lane, bits);
  });
}

void f2fp(Context& c) {
  if (!c.needs(3)) return;
  const auto to = c.has(Part::BF16) ? to_brain : to_half;
  c.each([&](uint32_t lane) {
    c.set(c.operand(0), lane, to(c.real(c.operand(1), lane)) << 16 | to(c.real(c.operand(2), lane)));
  });
}

void frnd(Context& c) {
  if (!c.needs(2)) return;
  c.each([&](uint32_t lane) {
    if (c.has(Part::F64)) {
      return c.set_pair(c.operand(0), lane, std::bit_cast<uint64_t>(rounded(c, c.twice(c.operand(1), lane))));
    }
    c.set(c.operand(0), lane, finished(c, static_cast<float>(rounded(c, double{c.real(c.operand(1), lane)}))));
  });
}

void hadd2(Context& c) {
  on_halves(c, 2, [](const float* in) { return in[0] + in[1]; });
}
void hmul2(Context& c) {
  on_halves(c, 2, [](const float* in) { return in[0] * in[1]; });
}
void hfma2(Context& c) {
  on_halves(c, 3, [](const float* in) { return std::fma(in[0], in[1], in[2]); });
}

}  // namespace reprise::sass
