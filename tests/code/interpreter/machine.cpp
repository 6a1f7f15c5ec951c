#include "tests/code/interpreter/machine.h"

#include <cmath>

namespace reprise::sass {

uint32_t Context::constant(const Operand& operand, uint32_t lane, uint32_t bytes) const {
  const uint32_t index = operand.by_uniform ? warp.u[operand.number] : warp.r[operand.number][lane];
  const uint64_t place = (operand.number == kZeroRegister ? 0 : index) + uint64_t{operand.value};
  uint32_t value = 0;
  if (operand.bank > 4 || static_cast<uint32_t>(place) + bytes > machine.program.banks[operand.bank].size()) {
    machine.stop(Stop::outside, "a constant behind the end: " + std::string(operation.source->text));
    return 0;
  }
  std::memcpy(&value, machine.program.banks[operand.bank].data() + static_cast<uint32_t>(place), bytes);
  return value;
}

// `half`: 1 for the upper half of 64 bits.
uint32_t Context::bits(const Operand& operand, uint32_t lane, uint32_t half) const {
  switch (operand.kind) {
    case Kind::reg:
      return operand.number == kZeroRegister ? 0 : warp.r[operand.number + half][lane];
    case Kind::uniform:
      return operand.number == kZeroUniform ? 0 : warp.u[operand.number + half];
    case Kind::whole:
      if (half != 0 && operand.value >> 31 != 0) refuse();
      return half == 0 ? operand.value : 0;
    case Kind::real:
      return std::bit_cast<uint32_t>(static_cast<float>(operand.real));
    case Kind::constant: {
      Operand place = operand;
      place.value += 4 * half;
      return constant(place, lane, 4);
    }
    default:
      refuse();
      return 0;
  }
}

uint32_t Context::whole(const Operand& operand, uint32_t lane) const {
  uint32_t value = bits(operand, lane);
  if (operand.piece == 1 || operand.piece == 2) value = value >> (operand.piece == 2 ? 16 : 0) & 0xffff;
  if (operand.piece > 2) value = value >> (operand.piece - 3) * 8 & 0xff;
  if (operand.absolute) refuse();
  if (operand.inverted) value = ~value;
  return operand.negative ? 0 - value : value;
}

float Context::real(const Operand& operand, uint32_t lane) const {
  uint32_t value = bits(operand, lane);
  if (operand.piece != 0 || operand.inverted) refuse();
  if (operand.absolute) value &= 0x7fffffff;
  if (operand.negative) value ^= 0x80000000;
  float result = std::bit_cast<float>(value);
  if (has(Part::FTZ) && std::fpclassify(result) == FP_SUBNORMAL) result = std::copysign(0.0F, result);
  return result;
}

double Context::twice(const Operand& operand, uint32_t lane) const {
  if (operand.is(Kind::real)) return operand.real;
  uint64_t value = operand.is(Kind::whole) ? uint64_t{operand.value} << 32 : pair(operand, lane);
  if (operand.absolute) value &= ~(uint64_t{1} << 63);
  if (operand.negative) value ^= uint64_t{1} << 63;
  return std::bit_cast<double>(value);
}

bool Context::truth(const Operand& operand, uint32_t lane) const {
  bool value = false;
  if (operand.is(Kind::predicate) && operand.number < 8) {
    value = (warp.p[operand.number] >> lane & 1) != 0;
  } else if (operand.is(Kind::uniform_predicate) && operand.number < 8) {
    value = (warp.up >> operand.number & 1) != 0;
  } else {
    refuse();
  }
  return value != operand.inverted;
}

void Context::set(const Operand& operand, uint32_t lane, uint32_t value, uint32_t half) const {
  if (operand.is(Kind::reg)) {
    if (operand.number != kZeroRegister) warp.r[operand.number + half][lane] = value;
  } else if (operand.is(Kind::uniform)) {
    if (operand.number != kZeroUniform) warp.u[operand.number + half] = value;
  } else {
    refuse();
  }
}

void Context::set_truth(const Operand& operand, uint32_t lane, bool value) const {
  if (operand.number == kTruth) return;
  if (operand.is(Kind::predicate) && operand.number < 8) {
    warp.p[operand.number] = (warp.p[operand.number] & ~(1U << lane)) | uint32_t{value} << lane;
  } else if (operand.is(Kind::uniform_predicate) && operand.number < 8) {
    warp.up = (warp.up & ~(1U << operand.number)) | uint32_t{value} << operand.number;
  } else {
    refuse();
  }
}

}  // namespace reprise::sass
