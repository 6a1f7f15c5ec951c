// Loads, stores and atomics: of constants, of shared memory, of the stack, of global memory, whose accesses the world
// keeps a log of.
#include <algorithm>
#include <cmath>

#include "tests/code/interpreter/operations.h"

namespace reprise::sass {
namespace {

enum class Space : uint8_t { global, shared, local };

struct Place {
  Space space = Space::global;
  uint64_t address = 0;
};

uint32_t size_of(const Context& c) {
  if (c.operation.parts.any(Part::U8, Part::S8)) return 1;
  if (c.operation.parts.any(Part::U16, Part::S16)) return 2;
  if (c.has(Part::n128)) return 16;
  return c.operation.parts.any(Part::n64, Part::F64, Part::U64, Part::S64) ? 8 : 4;
}

// [R2.64+UR4+0x10] of global memory, [R2.X4+UR4+0x10] of the others.
uint64_t address_of(const Context& c, const Operand& operand, uint32_t lane, bool global) {
  const Operand reg{.kind = Kind::reg, .number = operand.number};
  const Operand uniform{.kind = Kind::uniform, .number = operand.uniform};
  if (!global)
    return static_cast<uint32_t>((c.bits(reg, lane) << operand.shift) + c.bits(uniform, lane) + operand.value);
  const bool both = operand.number != kZeroRegister && operand.uniform != kZeroUniform;
  if (!c.has(Part::E) || operand.shift != 0 || (both && !operand.wide && !operand.narrow)) c.refuse();
  const uint64_t first = operand.narrow ? c.bits(reg, lane) : c.pair(reg, lane);
  return first + c.pair(uniform, lane) + static_cast<uint64_t>(int64_t{static_cast<int32_t>(operand.value)});
}

// Generic addresses also lead to shared memory and the stack.
Place place_of(const Context& c, const Operand& operand, uint32_t lane, Space space) {
  const uint64_t address = address_of(c, operand, lane, space == Space::global);
  if (space == Space::global && !c.operation.source->text.starts_with("LDG") &&
      !c.operation.source->text.starts_with("STG")) {
    if (address - kSharedWindow < kWindowBytes) return {Space::shared, address - kSharedWindow};
    if (address - kLocalWindow < kWindowBytes) return {Space::local, address - kLocalWindow};
  }
  return {space, address};
}

bool lies_outside(const Context& c, Place place, uint32_t bytes) {
  constexpr const char* kNames[] = {"global memory", "shared memory", "the stack"};
  if (place.address % bytes != 0) {
    c.machine.stop(Stop::outside, "not aligned: " + std::string(c.operation.source->text));
    return true;
  }
  const uint64_t limit = place.space == Space::shared ? c.block.shared.size() : kStackBytes;
  if (place.space == Space::global ? c.machine.world.find(place.address).has_value() : place.address + bytes <= limit)
    return false;
  c.machine.stop(Stop::outside, std::string("outside of ") + kNames[static_cast<size_t>(place.space)] + ": " +
                                    std::string(c.operation.source->text));
  return true;
}

uint8_t* bytes_at(const Context& c, Place place, uint32_t lane) {
  if (place.space == Space::shared) return c.block.shared.data() + place.address;
  std::vector<uint8_t>& stack = c.warp.stack[lane];
  if (stack.empty()) stack.resize(kStackBytes);
  return stack.data() + place.address;
}

bool read(const Context& c, Place place, uint32_t lane, void* to, uint32_t bytes) {
  if (lies_outside(c, place, bytes)) return false;
  if (place.space == Space::global) return c.machine.world.read(place.address, to, bytes);
  std::memcpy(to, bytes_at(c, place, lane), bytes);
  return true;
}

uint32_t thread_of(const Context& c, uint32_t lane) {
  return c.block.number * c.machine.dimensions.threads() + c.warp.number * kLanes + lane;
}

bool write(const Context& c, Place place, uint32_t lane, const void* from, uint32_t bytes) {
  if (lies_outside(c, place, bytes)) return false;
  if (place.space == Space::global) return c.machine.world.write(place.address, from, bytes, thread_of(c, lane));
  std::memcpy(bytes_at(c, place, lane), from, bytes);
  return true;
}

void mark(const Context& c, Place place, bool written) {
  if (place.space == Space::global) c.machine.world.mark(place.address, written);
}

const Operand* first_address(const Context& c, size_t skip = 0) {
  for (const Operand& operand : c.operation.operands) {
    if (operand.is(Kind::address) && skip-- == 0) return &operand;
  }
  c.refuse();
  return nullptr;
}

void load(Context& c, Space space) {
  const Operand* from = first_address(c);
  if (from == nullptr || !c.operand(0).is(Kind::reg)) return c.refuse();
  const uint32_t bytes = size_of(c);
  c.each([&](uint32_t lane) {
    uint32_t words[4] = {};
    const Place place = place_of(c, *from, lane, space);
    if (!read(c, place, lane, words, bytes)) return;
    mark(c, place, false);
    if (c.has(Part::S8)) words[0] = static_cast<uint32_t>(static_cast<int8_t>(words[0]));
    if (c.has(Part::S16)) words[0] = static_cast<uint32_t>(static_cast<int16_t>(words[0]));
    for (uint32_t n = 0; n < std::max(bytes / 4, 1U); ++n) c.set(c.operand(0), lane, words[n], n);
  });
}

void store(Context& c, Space space) {
  const Operand* to = first_address(c);
  if (to == nullptr || c.count() != 2) return c.refuse();
  const uint32_t bytes = size_of(c);
  c.each([&](uint32_t lane) {
    uint32_t words[4] = {};
    for (uint32_t n = 0; n < std::max(bytes / 4, 1U); ++n) words[n] = c.bits(c.operand(1), lane, n);
    const Place place = place_of(c, *to, lane, space);
    if (write(c, place, lane, words, bytes)) mark(c, place, true);
  });
}

float float_of(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double double_of(uint64_t bits) { return std::bit_cast<double>(bits); }

uint64_t least(const Context& c, uint64_t a, uint64_t b) {
  bool less = a < b;
  if (c.has(Part::S32)) less = static_cast<int32_t>(a) < static_cast<int32_t>(b);
  if (c.has(Part::S64)) less = static_cast<int64_t>(a) < static_cast<int64_t>(b);
  return less == c.has(Part::MIN) ? a : b;
}

uint64_t sum(const Context& c, uint64_t a, uint64_t b) {
  if (c.has(Part::F32)) return std::bit_cast<uint32_t>(float_of(a) + float_of(b));
  if (c.has(Part::F64)) return std::bit_cast<uint64_t>(double_of(a) + double_of(b));
  if (!c.has(Part::F16x2)) return a + b;
  const auto half = [](uint64_t x, uint64_t y) {
    return to_half(from_half(static_cast<uint32_t>(x & 0xffff)) + from_half(static_cast<uint32_t>(y & 0xffff)));
  };
  return half(a, b) | half(a >> 16, b >> 16) << 16;
}

// `b` stands behind the address; of a CAS it is what is compared.
uint64_t changed(const Context& c, uint64_t old, uint64_t b, uint64_t other) {
  const auto word = static_cast<uint32_t>(old);
  if (c.has(Part::POPC)) return old + 1;
  if (c.operation.parts.any(Part::CAS, Part::CAST)) return old == b ? other : old;
  if (c.has(Part::EXCH)) return b;
  if (c.has(Part::ADD)) return sum(c, old, b);
  if (c.has(Part::AND)) return old & b;
  if (c.has(Part::OR)) return old | b;
  if (c.has(Part::XOR)) return old ^ b;
  if (c.has(Part::INC)) return word >= b ? 0 : word + 1;
  if (c.has(Part::DEC)) return word == 0 || word > b ? b : word - 1;
  if (c.operation.parts.any(Part::MIN, Part::MAX) && !c.operation.parts.any(Part::F32, Part::F64, Part::F16x2))
    return least(c, old, b);
  c.refuse();
  return 0;
}

// Atomics one thread after the other; outside of the race that plain stores are watched for.
void change(Context& c, Space space) {
  const Operand* at = first_address(c);
  if (at == nullptr) return;
  const auto index = static_cast<size_t>(at - c.operation.operands.data());
  const bool two = c.operation.parts.any(Part::CAS, Part::CAST);
  const bool popc = c.has(Part::POPC);
  if (!popc && c.count() < index + (two ? 3 : 2)) return c.refuse();
  const uint32_t bytes = size_of(c);
  c.each([&](uint32_t lane) {
    const auto value = [&](size_t n) {
      if (popc || (n == 2 && !two)) return uint64_t{0};
      const Operand& operand = c.operand(index + n);
      return bytes == 8 ? c.pair(operand, lane) : uint64_t{c.bits(operand, lane)};
    };
    const Place place = place_of(c, *at, lane, space);
    uint64_t old = 0;
    if (!read(c, place, lane, &old, bytes)) return;
    const uint64_t now = changed(c, old, value(1), value(2));
    if (place.space == Space::global) {
      c.machine.world.change(place.address, &now, bytes);
    } else {
      write(c, place, lane, &now, bytes);
    }
    mark(c, place, false);
    mark(c, place, true);
    for (size_t n = 0; n < index; ++n) {
      const Operand& to = c.operand(n);
      if (to.is(Kind::predicate)) {
        c.set_truth(to, lane, true);
      } else if (c.has(Part::CAST)) {
        c.set(to, lane, old == value(1) ? 1 : 0);
      } else {
        c.set(to, lane, static_cast<uint32_t>(old));
        if (bytes == 8) c.set(to, lane, static_cast<uint32_t>(old >> 32), 1);
      }
    }
  });
}

}  // namespace

void ldc(Context& c) {
  if (!c.needs(2) || !c.operand(1).is(Kind::constant)) return c.refuse();
  const uint32_t bytes = size_of(c);
  c.each([&](uint32_t lane) {
    if (bytes == 8) return c.set_pair(c.operand(0), lane, c.pair(c.operand(1), lane));
    uint32_t value = c.constant(c.operand(1), lane, bytes);
    if (c.has(Part::S8)) value = static_cast<uint32_t>(static_cast<int8_t>(value));
    if (c.has(Part::S16)) value = static_cast<uint32_t>(static_cast<int16_t>(value));
    c.set(c.operand(0), lane, value);
  });
}

void load_shared(Context& c) { load(c, Space::shared); }
void store_shared(Context& c) { store(c, Space::shared); }
void change_shared(Context& c) { change(c, Space::shared); }
void load_local(Context& c) { load(c, Space::local); }
void store_local(Context& c) { store(c, Space::local); }
void load_global(Context& c) { load(c, Space::global); }
void store_global(Context& c) { store(c, Space::global); }
void change_global(Context& c) { change(c, Space::global); }

// To shared memory; with ZFILL only where the predicate holds, else zeros.
void copy_global(Context& c) {
  const Operand* to = first_address(c);
  const Operand* from = first_address(c, 1);
  if (to == nullptr || from == nullptr) return;
  const uint32_t bytes = size_of(c);
  const Operand& last = c.operand(c.count() - 1);
  if (!last.is(Kind::address) && !last.is(Kind::predicate)) return c.refuse();
  c.each([&](uint32_t lane) {
    uint32_t words[4] = {};
    const Place source{Space::global, address_of(c, *from, lane, true)};
    if (last.is(Kind::address) || c.truth(last, lane)) {
      if (!read(c, source, lane, words, bytes)) return;
      mark(c, source, false);
    }
    write(c, {Space::shared, address_of(c, *to, lane, false)}, lane, words, bytes);
  });
}

// Which memory a generic address leads to.
void qspc(Context& c) {
  const Operand* at = first_address(c);
  if (at == nullptr) return;
  c.each([&](uint32_t lane) {
    const uint64_t address = address_of(c, *at, lane, true);
    const uint64_t window = c.has(Part::S) ? kSharedWindow : kLocalWindow;
    c.set_truth(c.operand(0), lane, address - window < kWindowBytes);
  });
}

}  // namespace reprise::sass
