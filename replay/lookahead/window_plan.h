// A plan over a sliding window: what has to leave the device and what comes to it, before which op, when ops run in the
// program's order. Each op's tensors are there before it; what is needed furthest in the future leaves for that
// (L. A. Belady, 1966), and it may leave as soon as its last op before is done, and what is needed may come as soon as
// there is room: integrated prefetching (Cao, Felten, Karlin, Li, SIGMETRICS 1995). Caller: LookAhead.
#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/lookahead/call_history.h"

namespace reprise::replay {

struct Move {
  enum class Kind : uint8_t { leave, come };  // what the program frees goes by itself
  Kind kind = Kind::leave;
  Mover mover = Mover::none;
  uint64_t chunks = 0;
  HistoryIndex at = 0;  // come: before this op; leave: when all ops below this one are done
  // Predicted frees of the mover before: it stands for a tensor that is still to be allocated. 0: the one that lives.
  uint32_t lives_later = 0;
};

class WindowPlan {
 public:
  static constexpr uint64_t kMostOps = 2048;   // that it looks ahead
  static constexpr uint64_t kMostMoves = 256;  // that are planned and not begun

  // Begins anew at op `next`, with so much room of `limit` chunks, and nothing there.
  void restart(HistoryIndex next, uint64_t free_chunks, uint64_t limit) noexcept;
  // ... but for this one.
  void is_there(const CallHistory& history, Mover mover, uint64_t chunks);
  // Plans further ops, until there is no room before one. `next`: the op that is performed next.
  void extend(const CallHistory& history, HistoryIndex next);
  // False: there are fewer chunks than when it was planned.
  bool set_limit(uint64_t chunks) noexcept;
  // An op that was predicted has been called: is it what was planned for? Tensors that were still to be allocated get
  // their names and sizes.
  bool confirm(const CallHistory& history, HistoryIndex index);
  // The program has freed it behind its last call.
  void freed(const CallHistory& history, Mover mover);

  HistoryIndex cursor() const noexcept { return cursor_; }
  std::deque<Move>& moves() noexcept { return moves_; }
  const std::deque<Move>& moves() const noexcept { return moves_; }

 private:
  // Larger leaves first: what is needed later, or where that is not known what was used longer ago.
  struct Need {
    HistoryIndex next_use = 0;
    uint64_t idle = 0;
    bool operator<(const Need& other) const noexcept {
      return std::tie(next_use, idle) < std::tie(other.next_use, other.idle);
    }
  };
  struct WindowPlace {
    uint64_t chunks = 0;
    Need need;
    HistoryIndex free_from = 0;  // when all ops below this one are done, it may leave
  };
  using Furthest = std::set<std::pair<Need, Mover>>;

  bool plan(const CallHistory& history, const HistoryOp& op);
  bool make_room(const CallHistory& history, uint64_t chunks, const std::vector<Mover>& needed);
  static Need need_of(const CallHistory& history, Mover mover, HistoryIndex before, bool later);
  void used(const CallHistory& history, Mover mover);
  void look_again(const CallHistory& history);
  void gone(Mover mover);
  void end_life(Mover mover);
  uint32_t lives_later(const CallHistory& history, Mover mover) const noexcept;
  bool rename(const CallHistory& history, Mover before, Mover now);

  HistoryIndex begun_ = 0;  // the op of restart()
  HistoryIndex cursor_ = 0;
  uint64_t free_ = 0, limit_ = 0;                  // chunks
  bool stalled_ = false;                           // there is no room before op `cursor_`
  std::unordered_map<Mover, WindowPlace> places_;  // what is there before op `cursor_`
  Furthest furthest_;                              // the same by next use
  std::unordered_map<Mover, uint32_t> frees_;      // from op `begun_` on, before op `cursor_`
  std::deque<Move> moves_;
  std::deque<HistoryOp> foreseen_;          // ops that were planned before they were called
  std::unordered_map<Mover, Mover> names_;  // of those that were still to be allocated, by what stood for them
  HistoryOp predicted_;
  std::vector<std::pair<Mover, uint64_t>> needed_;
};

}  // namespace reprise::replay
