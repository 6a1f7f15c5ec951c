// Looks ahead while no plan is in force: reads the calls that wait in the command log, predicts those behind them, and
// moves tensors before they are needed. A wrong prediction costs a copy: what an op needs and is not there comes on
// demand (Pager). Caller: OnDemandExecutor and the dispatcher's loop, on the dispatcher thread.
//
//     done ... | next op ... calls in the log ... | predicted calls ...
//                ^ their tensors are there, or on their way     ^ what comes and leaves is planned up to here
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/issue/shared.h"
#include "replay/lookahead/call_history.h"
#include "replay/lookahead/call_notes.h"
#include "replay/lookahead/window_plan.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

class LookAhead {
 public:
  LookAhead(Shared* shared, ManagedMemory* memory, Pager* pager) noexcept;

  // The entry at this position of the log is performed next; after stop().
  void begin(uint64_t position) noexcept;
  // Reads what the program has called, and moves what may move now. `may_leave`: nothing may, while a program thread
  // works with what is there.
  void step(bool may_leave) noexcept;
  // Before the set of the op that is performed next is made resident: waits for those of it that are on their way.
  void wait_for(const std::vector<ResidentTensor*>& set) noexcept;
  // Is all of it resident?
  bool is_there(const std::vector<ResidentTensor*>& set) const noexcept;
  // The entry was performed, or is in the hands of its program thread; later: that has made its call.
  void performed(const LogEntry& entry) noexcept;
  void made(const LogEntry& entry) noexcept;
  // Calls are performed by a plan, or tensors moved by others: nothing is on its way any more, and what is planned is
  // forgotten.
  void stop() noexcept;
  // Something waits for the device.
  bool is_waiting() const noexcept { return waiting_; }

  // What it came to so far.
  void write(RunLogWriter& log) noexcept;

 private:
  struct Counts {
    uint64_t in_time = 0;  // ops whose tensors were there
    uint64_t late = 0;     // ... were on their way
    uint64_t missed = 0;   // ... were not expected
    uint64_t out_bytes = 0;
    uint64_t in_bytes = 0;
    Traffic before;  // as of begin()
  };
  // What the log says of an address, ahead of what is performed.
  struct Ahead {
    Mover mover = Mover::none;  // none: freed
    uint64_t position = 0;      // of the entry
  };
  bool everything_fits() const noexcept;
  void read(const LogEntry& entry);
  void claim_chunks(const LogEntry& allocation);
  void read_op(const LogEntry& entry);
  void add_op(uint64_t signature, bool everything, const std::vector<Mover>& movers);
  Mover mover_at(CUdeviceptr base);
  ResidentTensor* tensor_of(Mover mover) noexcept;
  ResidentTensor* tensor_of(const Move& move) noexcept {
    return move.lives_later > 0 ? nullptr : tensor_of(move.mover);
  }
  void note(const LogEntry& entry);
  void plan_moves();
  void move(bool may_leave) noexcept;
  bool let_leave(const Move& move, bool may_leave) noexcept;
  bool let_come(const Move& move, int64_t room) noexcept;
  bool is_due(const std::vector<ResidentTensor*>& set) const noexcept;
  static uint64_t next_use(void* self, const ResidentTensor& tensor) noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Pager& pager_;
  CallHistory history_;
  CallNotes notes_;
  WindowPlan window_;
  std::unordered_map<CUdeviceptr, Ahead> ahead_;
  std::unordered_map<Mover, CUdeviceptr> where_;
  Counts counts_;
  HistoryIndex next_ = 0;  // the next op to be performed
  uint64_t read_ = 0;      // log position of the next entry to be read
  bool stopped_ = true;
  bool replan_ = true;
  bool waiting_ = false;
  // Calls in the hands of their program threads, by position: what they need stays.
  std::vector<std::pair<uint64_t, std::vector<Mover>>> held_;
};

}  // namespace reprise::replay
