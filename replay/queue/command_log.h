// The bounded command log: the calls of the program that are not issued yet. Program threads append byte copies (under
// the submission lock), the one dispatcher thread reads them, in any order, and reports each as done. Memory
// is taken once; a full log makes the program wait, as a driver's full queue does.
//
// The life of a launch:
//
//     program thread                                dispatcher thread
//     cuLaunchKernel
//      - hook: a Command: what the launch touches
//      - Session::submit: the plan's next call?
//      - append_op: a copy of it in the log
//      - publish  ------------- tail moves ------->   OnDemandExecutor::perform, in the log's order: page in, or
//     returns before the launch is with the driver,   PlanExecutor::take: wait for its predecessors in the plan
//     unless it must wait: then the thread sleeps      - Issuer::issue: cuLaunchKernel
//     on its Waiter until done or grant  <---------    - Lanes::advance: its position on its lane
//     a later call of the program answers a fault      - Issuer::conclude: Waiter::done, or Faults::report
//                                                      - CommandLog::done: head moves over all entries that are done
//
//     positions   0 ... | head .............. | settled ............. | tail
//                 done, | done or passed; the | the oldest entry that | the next entry
//                 freed | oldest is passed    | is neither            | to be published
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "preload/calls/command.h"
#include "preload/calls/read_back.h"

namespace reprise::replay {

// Where a program thread waits for the answer to one entry. Each thread has one, which is never destroyed.
class Waiter {
 public:
  static Waiter& of_this_thread() noexcept;

  void arm() noexcept { state_.store(kWaiting, std::memory_order_relaxed); }
  // Dispatcher: gives the answer (done), or tells the thread to issue the command itself now (grant).
  void done(CUresult result) noexcept;
  void grant() noexcept;
  // Program thread: waits for either. True when granted.
  bool wait() noexcept;
  CUresult result() const noexcept { return result_; }

 private:
  static constexpr uint32_t kWaiting = 0, kGranted = 1, kDone = 2;
  void announce(uint32_t state) noexcept;
  std::atomic<uint32_t> state_{kWaiting};
  CUresult result_ = CUDA_SUCCESS;
  Waiter* next_ = nullptr;  // of those without a thread
};

enum class EntryKind : uint8_t {
  op,
  left_out,  // an op of a plan that the program has left out: has its place there, and nothing runs
  allocate,
  free,
  event_record,
  event_wait,
  stream_destroy,
  ordered,
  activate,
  errand,
  read_back
};

// What the enforcer asks of the dispatcher for a call of the program that no plan can hold; a thread waits for it.
enum class Errand : uint8_t {
  mark_lanes,     // before a stream begins to capture, or joins a capture
  end_context,    // the entry's; another one than the managed one
  close,          // give all memory back, the dispatcher's thread ends
  leave_plan,     // before the program ends
  make_room,      // give back what is too much beside what is promised to calls around us
  headroom,       // give back device memory, as many bytes as the entry's size
  more_headroom,  // ... or more each time, by a count that is the entry's size
  synchronize,    // until the device has nothing left to do
  allow_peers,    // other devices may reach managed memory: bits of the entry's size
};

inline constexpr uint32_t kUnplanned = 0xffffffff;

// How far an entry has come. The log's own, and of those who perform it.
struct EntryProgress {
  uint64_t position = 0;
  uint64_t bytes = 0;   // of the log that this entry takes
  bool done = false;    // set by done(): the dispatcher has nothing left to do for it
  bool passed = false;  // set by pass(): its program thread sleeps until it is answered, so no call waits for it
  bool told = false;    // a line on stderr says why it could not be done
  Waiter* waiter = nullptr;
  bool program_issues = false;              // the waiting thread performs the driver call (synchronous copies)
  std::atomic<uint32_t> program_issued{0};  // 1: the granted thread has made the call
  CUresult program_result = CUDA_SUCCESS;   // the driver's answer to it
};

// What an allocation or a free says of memory.
struct EntryMemory {
  CUdeviceptr address = 0;
  uint64_t size = 0;            // bytes as asked for
  uint32_t chunk_count = 0;     // allocate: 0 for small ones
  uint64_t allocation = 0;      // id
  bool stream_ordered = false;  // on the command's stream
  bool free_handover = false;   // free: the plan hands the address over to a later allocation of the same size
  bool released = false;        // free: the address may stand behind it again
  bool ends_handover = false;   // free: the plan ended before that allocation came; releases the address alone
  uint64_t peak_footprint = 0;  // allocate: the program's, with it
};

struct LogEntry : EntryProgress, EntryMemory {
  EntryKind kind = EntryKind::op;
  bool staged = false;        // `payload` of the copy was staged: the dispatcher copies from `staging`
  bool all_resident = false;  // `ordered`: the call that follows may touch any memory
  Errand errand = Errand::mark_lanes;
  uint32_t call = kUnplanned;  // index into the plan's calls
  uint64_t iteration = 0;      // planned iteration that the call belongs to
  uint32_t plan = 0;           // activate: which of the plans
  uint64_t staging = 0;        // token of the staging area
  // Of an op. Of others: context and stream; activate: its payload are the addresses of the persistent tensors, in the
  // plan's order.
  Command command{};
  CUevent event = nullptr;  // event_record, event_wait
  unsigned flags = 0;
  const ReadBack* read_back = nullptr;  // read_back: what the waiting thread asks for
};

class CommandLog {
 public:
  static constexpr uint64_t kEntries = 1u << 15;

  CommandLog() noexcept = default;
  ~CommandLog();
  CommandLog(const CommandLog&) = delete;
  CommandLog& operator=(const CommandLog&) = delete;
  // Takes `bytes` of memory; false when the system has none.
  bool open(uint64_t bytes) noexcept;

  // Program side, under the submission lock. Waits while the log is full. The entry is visible to the dispatcher after
  // publish(). append_op copies the command with its accesses and payload.
  LogEntry* append(EntryKind kind) noexcept;
  LogEntry* append_op(const Command& command) noexcept;
  void publish(LogEntry* entry) noexcept;

  // Returns when the entry at `position` and all before it are settled: done, or passed. A thread that sleeps in a call
  // has not told any other thread anything since, so nothing that others do comes after that call.
  void wait_settled(uint64_t position) noexcept;
  bool is_settled(uint64_t position) const noexcept { return settled() > position; }
  uint64_t settled() const noexcept { return settled_.load(std::memory_order_acquire); }
  uint64_t head() const noexcept { return head_.load(std::memory_order_acquire); }
  uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire); }

  // How many program threads wait for the dispatcher.
  uint32_t blocked() const noexcept { return blocked_.load(std::memory_order_acquire); }
  void enter_blocked() noexcept {
    blocked_.fetch_add(1);
    wake();
  }
  void leave_blocked() noexcept { blocked_.fetch_sub(1); }

  // Dispatcher side.
  LogEntry* at(uint64_t position) noexcept { return slots_[position % kEntries]; }
  void done(LogEntry* entry) noexcept;
  // The entry is not done, but those behind it need not wait for it.
  void pass(LogEntry* entry) noexcept;
  // Sleeps until an entry was published, wake() was called or `timeout_ns` passed (0: at most a second).
  void wait_for_work(uint64_t seen_tail, uint64_t timeout_ns) noexcept;
  void wake() noexcept;

 private:
  void* take(uint64_t bytes) noexcept;
  void move_settled() noexcept;

  unsigned char* ring_ = nullptr;
  uint64_t ring_bytes_ = 0;
  LogEntry** slots_ = nullptr;
  uint64_t written_ = 0;                // ring bytes handed out since the start
  std::atomic<uint64_t> reclaimed_{0};  // ring bytes that are free again
  std::atomic<uint64_t> tail_{0};
  std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> settled_{0};  // never below head_
  std::atomic<uint32_t> blocked_{0};
  std::atomic<uint32_t> signal_{0};
  std::atomic<uint32_t> sleeping_{0};
  uint64_t next_position_ = 0;
  int patience_ = 16;  // looks at the log before the dispatcher sleeps; adapts to how often it finds work
};

}  // namespace reprise::replay
