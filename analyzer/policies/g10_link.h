// How much of the link each op's time has left, by direction: what G10 books its migrations in. The SSD lies behind the
// same link, so its bytes count twice. Used by g10_periods.cpp only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "analyzer/memgraph/schedule.h"

namespace reprise::analyzer {

class G10Link {
 public:
  G10Link(const std::vector<uint64_t>& duration_ns, double link_bytes_per_s, double ssd_bytes_per_s) {
    for (const uint64_t ns : duration_ns) {
      const double seconds = static_cast<double>(ns) / 1e9;
      link_.push_back(link_bytes_per_s * seconds);
      ssd_.push_back(std::min(link_bytes_per_s, ssd_bytes_per_s) * seconds);
    }
  }

  // The op in [begin, end) during which `bytes` are through when they start with `begin`; `end`: none.
  uint32_t forward(Tier tier, double bytes, uint32_t begin, uint32_t end) const {
    for (uint32_t op = begin; op < end; ++op) {
      bytes -= left(tier, op);
      if (bytes <= 0) return op;
    }
    return end;
  }
  // The last op with which `bytes` can start to be through before `end`; kNone: none from `begin` on.
  uint32_t backward(Tier tier, double bytes, uint32_t begin, uint32_t end) const {
    for (uint32_t op = end; op-- > begin;) {
      bytes -= left(tier, op);
      if (bytes <= 0) return op;
    }
    return kNone;
  }
  bool is_full(Tier tier, uint32_t begin, uint32_t end) const {
    for (uint32_t op = begin; op < end; ++op) {
      if (left(tier, op) > 0) return false;
    }
    return true;
  }

  void book(Tier tier, double bytes, uint32_t begin, uint32_t end) {
    for (uint32_t op = begin; op < end && bytes > 0; ++op) {
      const double taken = std::min(bytes, left(tier, op));
      link_[op % link_.size()] -= taken;
      if (tier == Tier::ssd) ssd_[op % ssd_.size()] -= taken;
      bytes -= taken;
    }
  }

 private:
  double left(Tier tier, uint32_t op) const {
    const size_t at = op % link_.size();
    return std::max(0.0, tier == Tier::ssd ? std::min(link_[at], ssd_[at]) : link_[at]);
  }
  std::vector<double> link_;  // op -> bytes
  std::vector<double> ssd_;
};

}  // namespace reprise::analyzer
