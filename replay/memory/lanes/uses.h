// "Until here": which lanes have used a chunk, a tensor or a mapping, and how far. A LaneUse is a position on a lane
// (lanes.h); what was used is free when every use of it is complete. Small and copyable; callers: chunks, tensors, the
// pager.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise::replay {

using LaneIndex = uint16_t;
inline constexpr LaneIndex kNoLane = 0xffff;

struct LaneUse {
  LaneIndex lane = 0;
  uint64_t position = 0;
};

class LaneUses {
 public:
  static constexpr std::size_t kMost = 8;  // lanes that can be told apart
  void add(LaneIndex lane, uint64_t position) noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
      if (entries_[i].lane != lane) continue;
      if (entries_[i].position < position) entries_[i].position = position;
      return;
    }
    if (count_ == entries_.size()) {
      everything_ = true;
      return;
    }
    entries_[count_++] = {lane, position};
  }
  void merge(const LaneUses& other) noexcept {
    for (const LaneUse& use : other) add(use.lane, use.position);
    everything_ = everything_ || other.everything_;
  }
  void clear() noexcept {
    count_ = 0;
    everything_ = false;
  }
  bool empty() const noexcept { return count_ == 0 && !everything_; }
  // More lanes than fit: only a synchronisation of the whole device is safe.
  bool everything() const noexcept { return everything_; }
  const LaneUse* begin() const noexcept { return entries_.data(); }
  const LaneUse* end() const noexcept { return entries_.data() + count_; }

 private:
  std::array<LaneUse, kMost> entries_{};
  uint32_t count_ = 0;
  bool everything_ = false;
};

}  // namespace reprise::replay
