// Which bytes of the host tier's slabs are taken. A tensor's slot is a list of pieces (a single one where there is
// room), so that a tier with enough free bytes can always serve it, however fragmented they are. Pure bookkeeping;
// caller: tiers/host.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace reprise::replay {

struct HostPiece {
  uint64_t address = 0;
  uint64_t bytes = 0;
};
using HostSlot = std::vector<HostPiece>;

class Slots {
 public:
  // Sizes are rounded up to `unit` bytes.
  void reset(uint64_t unit) noexcept;
  void add_slab(uint64_t address, uint64_t bytes) noexcept;

  // Pieces that together hold `bytes`: the first hole that holds all, else the largest holes. False (and nothing taken)
  // when the free bytes do not suffice.
  bool allocate(uint64_t bytes, HostSlot* slot) noexcept;
  // Gives the pieces back and empties the slot.
  void release(HostSlot* slot) noexcept;

  uint64_t free_bytes() const noexcept { return free_bytes_; }
  uint64_t capacity() const noexcept { return capacity_; }
  uint64_t rounded(uint64_t bytes) const noexcept { return (bytes + unit_ - 1) / unit_ * unit_; }

 private:
  void take(std::map<uint64_t, uint64_t>::iterator hole, uint64_t bytes, HostSlot* slot) noexcept;
  bool starts_slab(uint64_t address) const noexcept { return slabs_.count(address) != 0; }

  uint64_t unit_ = 1;
  uint64_t free_bytes_ = 0;
  uint64_t capacity_ = 0;
  std::map<uint64_t, uint64_t> slabs_;  // address -> bytes
  std::map<uint64_t, uint64_t> holes_;  // address -> bytes; never across two slabs
};

}  // namespace reprise::replay
