// How much of the link each op's time has left, by direction: what G10 books its migrations in. The SSD lies behind the
// same link, so its bytes count twice. Used by g10_periods.cpp only.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

class G10Link {
 public:
  G10Link(const std::vector<uint64_t>& duration_ns, double link_bytes_per_s, double ssd_bytes_per_s)
      : count_(static_cast<uint32_t>(duration_ns.size())) {
    for (const uint64_t ns : duration_ns) {
      const double seconds = static_cast<double>(ns) / 1e9;
      link_.push_back(link_bytes_per_s * seconds);
      ssd_.push_back(std::min(link_bytes_per_s, ssd_bytes_per_s) * seconds);
    }
    for (Skips& skips : skips_) {
      skips.next.resize(size_t{count_} + 1);
      skips.before.resize(size_t{count_} + 1);
      std::iota(skips.next.begin(), skips.next.end(), 0u);
      std::iota(skips.before.begin(), skips.before.end(), 0u);
    }
    for (OpIndex at{0}; at < count_; ++at) mark_full(at);
  }

  // The op in [begin, end) during which `bytes` are through when they start with `begin`; `end`: none.
  OpIndex forward(Tier tier, double bytes, OpIndex begin, OpIndex end) const {
    for (OpIndex op = next(tier, begin); op < end; op = next(tier, op + 1)) {
      bytes -= left(tier, op);
      if (bytes <= 0) return op;
    }
    return end;
  }
  // The last op with which `bytes` can start to be through before `end`; kNone: none from `begin` on.
  OpIndex backward(Tier tier, double bytes, OpIndex begin, OpIndex end) const {
    for (OpIndex behind = before(tier, end); behind > begin; behind = before(tier, behind - 1)) {
      bytes -= left(tier, behind - 1);
      if (bytes <= 0) return behind - 1;
    }
    return OpIndex{kNone};
  }
  bool is_full(Tier tier, OpIndex begin, OpIndex end) const { return next(tier, begin) >= end; }

  void book(Tier tier, double bytes, OpIndex begin, OpIndex end) {
    for (OpIndex op = next(tier, begin); op < end && bytes > 0; op = next(tier, op + 1)) {
      const double taken = std::min(bytes, left(tier, op));
      link_[place(op)] -= taken;
      if (tier == Tier::ssd) ssd_[place(op)] -= taken;
      bytes -= taken;
      mark_full(place(op));
    }
  }

 private:
  // Towards the next op, and the one before, that has something left; both may be some steps away, through others.
  struct Skips {
    std::vector<uint32_t> next;    // op -> at or behind it; the last one: none
    std::vector<uint32_t> before;  // op + 1 -> at or before the op, plus 1; 0: none
  };

  // Of an op of two iterations in one: a division would take longer than all the rest.
  OpIndex place(OpIndex op) const { return op < count_ ? op : op - count_; }

  double left(Tier tier, OpIndex op) const {
    const size_t at = place(op);
    return std::max(0.0, tier == Tier::ssd ? std::min(link_[at], ssd_[at]) : link_[at]);
  }
  void mark_full(OpIndex at) {
    for (const Tier tier : {Tier::host, Tier::ssd}) {
      if (left(tier, at) > 0) continue;
      Skips& skips = skips_[static_cast<size_t>(tier)];
      skips.next[at] = at + 1;
      skips.before[at + 1] = at;
    }
  }
  static uint32_t follow(std::vector<uint32_t>& steps, uint32_t from) {
    while (steps[from] != from) {
      steps[from] = steps[steps[from]];
      from = steps[from];
    }
    return from;
  }
  // Over two iterations: the first op at `op` or behind it that has something left; else one far behind.
  OpIndex next(Tier tier, OpIndex op) const {
    std::vector<uint32_t>& steps = skips_[static_cast<size_t>(tier)].next;
    while (op < 2 * count_) {
      const uint32_t base = op - place(op);
      const uint32_t at = follow(steps, op - base);
      if (at < count_) return OpIndex{base + at};
      op = OpIndex{base + count_};
    }
    return OpIndex{kNone};
  }
  // Likewise backwards, of the ops before `end`; returns the one behind it, 0: none.
  OpIndex before(Tier tier, OpIndex end) const {
    std::vector<uint32_t>& steps = skips_[static_cast<size_t>(tier)].before;
    while (end > 0) {
      const uint32_t base = end - 1 - place(end - 1);
      const uint32_t at = follow(steps, end - base);
      if (at > 0) return OpIndex{base + at};
      end = OpIndex{base};
    }
    return OpIndex{0};
  }

  uint32_t count_;            // ops
  std::vector<double> link_;  // op -> bytes
  std::vector<double> ssd_;
  mutable std::array<Skips, 2> skips_;  // by tier; searches shorten them
};

}  // namespace reprise::analyzer
