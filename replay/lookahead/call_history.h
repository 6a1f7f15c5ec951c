// The program's ops in order, what each touches, and what is likely to come next: after the calls that are known (they
// stand in the command log) what came last time after the same calls. The longest of several suffixes counts, as in
// prediction by partial matching (Cleary and Witten, 1984). A tensor of the last time stands for the one that has its
// place now: operands of ops that correspond are each other's heirs. Caller: LookAhead; dispatcher thread.
//
//     index   0 ....... match | match + 1 ....... tail - 1 | tail ............... end - 1
//                       ops that were called               | predicted: as match + 1 and on
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "replay/lookahead/mover.h"

namespace reprise::replay {

using HistoryIndex = uint64_t;

struct HistoryOp {
  uint64_t signature = 0;     // what the op is, without addresses and sizes
  bool everything = false;    // touches any memory
  std::vector<Mover> movers;  // once each, in the order of the operands
  std::vector<Mover> freed;   // behind it, before the next op
};

class CallHistory {
 public:
  static constexpr uint64_t kMostOps = uint64_t{1} << 15;
  static constexpr HistoryIndex kNever = UINT64_MAX;

  // The program's next op, and a free behind the last one. `movers` are once each.
  void add(uint64_t signature, bool everything, const std::vector<Mover>& movers);
  void add_free(Mover mover);
  // What it takes of the device, in chunks; 0: not known.
  void set_chunks(Mover mover, uint64_t chunks) { lives_[mover].chunks = chunks; }
  uint64_t chunks_of(Mover mover) const noexcept {
    const Life* const one = life(mover);
    return one == nullptr ? 0 : one->chunks;
  }
  // What follows has nothing to do with what came before: calls were not seen.
  void interrupt() noexcept;

  HistoryIndex tail() const noexcept { return tail_; }
  HistoryIndex end() const noexcept { return match_ == kNever ? tail_ : tail_ + (tail_ - 1 - match_); }
  // What is predicted is trusted up to here: as far as it has come true, several times. Frees behind the last op may
  // still be called, so what follows it next time is not known yet.
  HistoryIndex horizon() const noexcept {
    return match_ == kNever ? tail_ : std::min(end() - 1, tail_ + kTrust * matched_);
  }
  // An op that was called, and one that is predicted, before end(). Movers of predicted ops are those that live now, or
  // stand for tensors that are still to be allocated.
  const HistoryOp& called(HistoryIndex index) const noexcept { return ops_[index % kMostOps]; }
  HistoryOp predicted(HistoryIndex index) const;
  // The last one that was called, with the frees that are likely to be called behind it.
  HistoryOp last() const;
  // Will be touched next after op `after`; kNever: nothing is known of that. `later`: the tensor that is still to be
  // allocated, for which it stands.
  HistoryIndex next_use(Mover mover, HistoryIndex after, bool later = false) const noexcept;

  // The program has freed it before op `index`.
  bool freed_before(Mover mover, HistoryIndex index) const noexcept {
    const Life* const one = life(mover);
    return one != nullptr && one->freed_behind != kNever && one->freed_behind < index;
  }
  // Was touched last before op `before`; 0: not known.
  HistoryIndex last_use(Mover mover, HistoryIndex before) const noexcept;

  // How many calls were foreseen: predicted, and called as predicted.
  uint64_t foreseen() const noexcept { return foreseen_; }
  uint64_t unforeseen() const noexcept { return unforeseen_; }

 private:
  static constexpr uint64_t kSuffixes[] = {64, 16, 4};
  static constexpr uint64_t kTrust = 4;
  static constexpr uint64_t kSlots = uint64_t{1} << 15;

  struct Life {
    std::vector<HistoryIndex> uses;  // oldest first
    Mover heir = Mover::none;        // the one that has its place now
    Mover ancestor = Mover::none;    // that had this one's place last time
    uint64_t chunks = 0;
    HistoryIndex freed_behind = kNever;  // this op
  };
  struct Suffix {
    uint64_t hash = 0;
    HistoryIndex last = kNever;  // op it ended with
  };

  const Life* life(Mover mover) const noexcept;
  Mover heir_of(Mover mover) const noexcept;
  void forget_oldest() noexcept;
  void follow(uint64_t signature) noexcept;
  void learn_suffixes() noexcept;
  void link(const HistoryOp& before, const HistoryOp& now);

  std::vector<HistoryOp> ops_;    // a ring
  std::vector<uint64_t> hashes_;  // of all ops up to one, by op
  std::vector<Suffix> suffixes_;  // kSlots for each length
  std::unordered_map<Mover, Life> lives_;
  HistoryIndex tail_ = 0;
  HistoryIndex since_ = 0;  // the first op that suffixes may reach back to
  HistoryIndex match_ = kNever;
  uint64_t matched_ = 0;  // ops up to match_ that were as those up to the last one
  uint64_t foreseen_ = 0;
  uint64_t unforeseen_ = 0;
};

}  // namespace reprise::replay
