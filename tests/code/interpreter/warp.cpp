// Operations between the threads of a warp, and what the machine says of itself.
#include <algorithm>

#include "tests/code/interpreter/operations.h"

namespace reprise::sass {
namespace {

uint32_t lanes_where(const Context& c, const Operand& operand) {
  uint32_t lanes = 0;
  for (uint32_t rest = c.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    lanes |= uint32_t{c.truth(operand, lane)} << lane;
  }
  return lanes;
}

uint32_t thread_of(const Context& c, uint32_t lane) { return c.warp.number * kLanes + lane; }

std::optional<uint64_t> special(const Context& c, std::string_view name, uint32_t lane) {
  const Dimensions& d = c.machine.dimensions;
  const uint32_t thread = thread_of(c, lane);
  if (name == "SRZ" || name == "SR_CgaCtaId" || name == "SR_LMEMHIOFF" || name == "SR_VIRTUALSMID") {
    return name == "SR_VIRTUALSMID" ? c.machine.order() % 100 : 0;
  }
  if (name == "SR_TID.X") return thread % d.block[0];
  if (name == "SR_TID.Y") return thread / d.block[0] % d.block[1];
  if (name == "SR_TID.Z") return thread / d.block[0] / d.block[1];
  if (name.starts_with("SR_CTAID.") && name.size() == 10) return c.block.id[(name[9] - 'X') % 3];
  if (name == "SR_LANEID") return lane;
  if (name == "SR_EQMASK") return 1U << lane;
  if (name == "SR_LTMASK") return (1U << lane) - 1;
  if (name == "SR_LEMASK") return (2U << lane) - 1;
  if (name == "SR_GTMASK") return ~((2U << lane) - 1);
  if (name == "SR_GEMASK") return ~((1U << lane) - 1);
  if (name == "SR_SWINHI") return kSharedWindow >> 32;
  if (name == "SR_LWINHI") return kLocalWindow >> 32;
  if (name == "SR_CLOCKLO" || name == "SR_GLOBALTIMERLO") return c.machine.clock * 7 + c.machine.order() % 7;
  return std::nullopt;
}

}  // namespace

void s2r(Context& c) {
  if (!c.needs(2)) return;
  const bool two = c.operation.source->text.starts_with("CS2R") && !c.has(Part::n32);
  c.each([&](uint32_t lane) {
    const auto value = special(c, c.operand(1).name, lane);
    if (!value) return c.refuse();
    if (two) return c.set_pair(c.operand(0), lane, *value);
    c.set(c.operand(0), lane, static_cast<uint32_t>(*value));
  });
}

void shfl(Context& c) {
  if (!c.needs(5)) return;
  uint32_t values[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) values[lane] = c.bits(c.operand(2), lane);
  c.each([&](uint32_t lane) {
    const uint32_t by = c.whole(c.operand(3), lane) & 31;
    const uint32_t bounds = c.whole(c.operand(4), lane);
    const uint32_t segment = bounds >> 8 & 31;
    const uint32_t first = lane & segment;
    const uint32_t last = first | (bounds & 31 & ~segment);
    uint32_t from = c.has(Part::UP)     ? lane - by
                    : c.has(Part::DOWN) ? lane + by
                    : c.has(Part::BFLY) ? lane ^ by
                                        : first | (by & ~segment);
    const bool good = c.has(Part::UP) ? static_cast<int32_t>(from) >= static_cast<int32_t>(last)
                                      : static_cast<int32_t>(from) <= static_cast<int32_t>(last);
    if (!good) from = lane;
    c.set(c.operand(1), lane, values[from & 31]);
    c.set_truth(c.operand(0), lane, good);
  });
}

// A register with a bit for each thread, and whether any or all have it.
void vote(Context& c) {
  if (!c.needs(2)) return;
  const size_t last = c.count() - 1;
  const uint32_t lanes = lanes_where(c, c.operand(last));
  const bool result = c.has(Part::ANY)   ? lanes != 0
                      : c.has(Part::ALL) ? lanes == c.active
                                         : lanes == 0 || lanes == c.active;
  c.each([&](uint32_t lane) {
    for (size_t n = 0; n < last; ++n) {
      const Operand& to = c.operand(n);
      if (to.is(Kind::reg) || to.is(Kind::uniform)) {
        c.set(to, lane, lanes);
      } else {
        c.set_truth(to, lane, result);
      }
    }
  });
}

void match(Context& c) {
  const bool all = c.has(Part::ALL);
  if (!c.needs(all ? 3 : 2)) return;
  const Operand& from = c.operand(c.count() - 1);
  const bool wide = c.has(Part::U64);
  uint32_t same[kLanes] = {};
  const auto value = [&](uint32_t lane) { return wide ? c.pair(from, lane) : c.bits(from, lane); };
  c.each([&](uint32_t lane) {
    c.each([&](uint32_t other) { same[lane] |= uint32_t{value(lane) == value(other)} << other; });
  });
  c.each([&](uint32_t lane) {
    const bool good = same[lane] == c.active;
    if (all) c.set_truth(c.operand(0), lane, good);
    c.set(c.operand(all ? 1 : 0), lane, all && !good ? 0 : same[lane]);
  });
}

void redux(Context& c) {
  if (!c.needs(2)) return;
  const auto first = static_cast<uint32_t>(std::countr_zero(c.active));
  uint32_t result = c.whole(c.operand(1), first);
  for (uint32_t rest = c.active & (c.active - 1); rest != 0; rest &= rest - 1) {
    const uint32_t value = c.whole(c.operand(1), static_cast<uint32_t>(std::countr_zero(rest)));
    const bool less = c.has(Part::S32) ? static_cast<int32_t>(value) < static_cast<int32_t>(result) : value < result;
    if (c.has(Part::AND)) {
      result &= value;
    } else if (c.has(Part::OR)) {
      result |= value;
    } else if (c.has(Part::XOR)) {
      result ^= value;
    } else if (c.has(Part::SUM)) {
      result += value;
    } else if (less == c.has(Part::MIN)) {
      result = value;
    }
  }
  c.set(c.operand(0), first, result);
}

void elect(Context& c) {
  const auto first = static_cast<uint32_t>(std::countr_zero(c.active));
  for (uint32_t rest = c.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    for (const Operand& to : c.operation.operands) {
      if (to.is(Kind::predicate)) c.set_truth(to, lane, lane == first);
      if (to.is(Kind::uniform_predicate)) c.refuse();
      if (to.is(Kind::reg) || to.is(Kind::uniform)) c.set(to, lane, first);
    }
  }
}

void bmov(Context& c) {
  if (!c.needs(2)) return;
  for (uint32_t rest = c.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (c.operand(0).is(Kind::barrier)) {
      const uint32_t number = c.bits(c.operand(1), lane);
      if (number >= c.warp.meetings.size()) return c.refuse();
      c.warp.b[c.operand(0).number][lane] = number;
    } else if (c.operand(1).is(Kind::barrier)) {
      uint32_t& barrier = c.warp.b[c.operand(1).number][lane];
      c.set(c.operand(0), lane, barrier);
      if (c.has(Part::CLEAR)) barrier = 0;
    } else {
      return c.refuse();
    }
  }
}

void trap(Context& c) { c.machine.stop(Stop::trap, std::string(c.operation.source->text)); }

}  // namespace reprise::sass
