// Where a tensor's bytes are: one state, and whether the host has them as well (Residency); for whom the tensor is kept
// (Keeping). Only the verbs of these classes write them. Debug builds stop at a verb that the state does not allow.
// ResidentTensor derives from both (tensors.h); callers: the pager, the activation and what executes plans, on the
// dispatcher thread.
//
//                  settle_in, also from dropped and dropping
//       +-------------------------------------------------------+
//       |    begin_arrival               settle_in              v    begin_departure
//      away ---------------> arriving -----------------------> resident ------------> departing
//      ^ ^ ^ <-------------                                    | |  ^ <--------------      |
//      | | |   turn_back                 left                  | |  |      stay            |
//      | | +---------------------------------------------------+ |  |                      |
//      | +----------------------------- left --------------------|--|----------------------+
//      | end_drop                                           drop v  | remade, end_drop
//   dropped <------------------ left, not_remade ------------- dropping
//
//   away, dropped, resident, departing ---- lose ----> lost
//
// What was dropped arrives as what is away does. not_remade leads from resident to dropped, too.
#pragma once
#include <cstdint>

#include "replay/memory/lanes/uses.h"

namespace reprise::replay {

class Residency {
 public:
  // `in_block`: small, its block moves for it.
  enum class State : uint8_t { in_block, away, arriving, resident, departing, dropping, dropped, lost };
  explicit Residency(State first = State::away) noexcept : state_(first) {}

  State state() const noexcept { return state_; }
  // It occupies its chunks, and its bytes are there.
  bool is_resident() const noexcept {
    return state_ == State::resident || state_ == State::departing || state_ == State::dropping;
  }
  // It has no chunks, and may get some.
  bool is_away() const noexcept { return state_ == State::away || state_ == State::dropped; }
  bool is_lost() const noexcept { return state_ == State::lost; }
  // Nothing has its bytes, and nothing makes them again.
  bool is_gone() const noexcept { return state_ == State::away && copy_ == Copy::stale; }

  // The program has written to it.
  bool is_written() const noexcept { return copy_ != Copy::needless; }
  // The host slot holds its bytes, once host_ready() is complete.
  bool host_valid() const noexcept { return copy_ == Copy::valid; }
  // Only the device has its bytes.
  bool needs_copy() const noexcept { return copy_ == Copy::stale; }
  LaneUse host_ready() const noexcept { return host_ready_; }

  // Strict safety: it has its chunks, to which its bytes are copied, and no address leads there yet; or it gets none.
  void begin_arrival() noexcept;
  void turn_back() noexcept;
  // It occupies its chunks, where its bytes are, or are about to be written.
  void settle_in() noexcept;
  // Strict safety: its bytes are still in its chunks, to which no address leads any more; or it keeps both.
  void begin_departure() noexcept;
  void stay() noexcept;
  // Its chunks are another tensor's, or free. Also of one that has none.
  void left() noexcept;
  // A failed device or copy took its only copy: uses of it answer an error.
  void lose() noexcept;

  // Its bytes are no longer what the host has.
  void wrote() noexcept;
  void host_copy_made(LaneUse ready) noexcept;
  // The host slot was found to hold its bytes.
  void host_copy_found() noexcept;
  void host_copy_dropped() noexcept;

  // A plan gives its bytes up without a copy, and a launch makes them again (dispatch/repeats.h), or fails to.
  void drop() noexcept;
  void remade() noexcept;
  void not_remade() noexcept;
  // The plan has ended, and what could be made again was.
  void end_drop() noexcept;

 private:
  enum class Copy : uint8_t { needless, stale, valid };

  State state_;
  Copy copy_ = Copy::needless;
  LaneUse host_ready_;
};

// For whom a tensor is kept: a plan may need one that the program has freed.
class Keeping {
 public:
  // The program has freed it, and the plan keeps it for the allocation that takes it over.
  bool in_handover() const noexcept { return kept_ == Kept::for_handover; }
  void hand_over() noexcept { kept_ = Kept::for_handover; }
  void taken_over() noexcept { kept_ = Kept::for_program; }
  // The program has freed it, and the plan still needs its bytes.
  bool is_freed_late() const noexcept { return kept_ == Kept::for_plan; }
  void freed_late() noexcept { kept_ = Kept::for_plan; }

 private:
  enum class Kept : uint8_t { for_program, for_handover, for_plan };

  Kept kept_ = Kept::for_program;
};

}  // namespace reprise::replay
