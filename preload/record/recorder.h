// Turns understood calls into trace records. Callers: the hooks (every call of the program), the forwarder and the
// replay (device times), entry (open, finish, abandon). Every function is noexcept, callable from any thread at any
// time, and neither locks, allocates nor enters the kernel on the hot path; with a failed or finished recorder it does
// nothing.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "preload/calls/command.h"
#include "preload/record/activity/source.h"
#include "preload/trace/writer.h"

namespace reprise {

class CallSites;

class Recorder {
 public:
  // Starts to record into `path` (truncated). nullptr with *why (a static or leaked line) when that cannot be. The
  // object is never destroyed. Writes the facts every trace has: program, arguments, executable hash, process, time.
  static Recorder* open(const char* path, const char** why, bool call_sites = true) noexcept;

  // CLOCK_MONOTONIC in nanoseconds, the clock of every time_ns in the trace.
  static uint64_t now_ns() noexcept;
  // When it was opened: the trace's "time.start_ns", by which others name this recording.
  uint64_t started_ns() const noexcept { return started_ns_; }

  // One fact about the run: driver, device, granularity, ... The last value of a key counts. Strings are copied.
  void info(const char* key, const char* value) noexcept;
  void info(const char* key, uint64_t value) noexcept;

  // A kernel, once, before its first launch is recorded. `id` starts at 1, without holes.
  // `identity`: of its code in all programs; 0: not known.
  void function(uint32_t id, const char* name, const trace::ParameterLayout* layout, uint32_t count, bool known,
                uint64_t identity = 0) noexcept;
  // A stream was created or is destroyed. Streams 0 (legacy) and 1 (per thread) need no record.
  void stream(uint32_t id, bool created, bool non_blocking, int priority, uint64_t sequence) noexcept;

  // Successful calls only: a failed allocate or free changes nothing and is not recorded.
  void allocated(uint64_t id, const AllocateCall& call, CUdeviceptr address, uint64_t sequence, uint32_t call_site,
                 uint16_t flags = 0) noexcept;
  void freed(const FreeCall& call, uint64_t sequence, uint16_t flags = 0) noexcept;

  // Call after the handler has answered: what the driver refused is recorded with kOpFailed (readers keep it, planners
  // skip it). `called_ns` is now_ns() as the program called; 0: now.
  void op(const Command& command, CUresult result, uint64_t called_ns) noexcept;
  // Event and synchronisation calls. `event` is an id of the caller's choosing, 0 where there is none. Of a run of
  // equal queries on one thread only the first is recorded.
  void order(trace::OrderKind kind, uint32_t stream_id, uint64_t event, uint64_t sequence) noexcept;
  // A range of NVTX or of reprise_mark(): depth > 0 push, 0 pop or point.
  void mark(const char* text, uint32_t depth, uint64_t sequence) noexcept;

  // Id of the calling thread's stack, for Command::call_site. `key` is what repeats when the call repeats (the op's
  // signature, a hash of the size): a key seen from the same stack depth is answered from a table. 0: none.
  uint32_t call_site(uint64_t key) noexcept;

  // When an op ran on the device: times of one clock per trace.
  void activity(uint64_t sequence, uint64_t start_ns, uint64_t end_ns) noexcept;
  // Records everything `source` has ready. One thread at a time.
  void collect(ActivitySource& source) noexcept;

  // From here on only facts, kernels and streams are recorded: the plan's iteration is in the trace already.
  void pause() noexcept { paused_.store(true, std::memory_order_relaxed); }
  // Calls are recorded again, from call `sequence` on; `after` was the last one before the pause. `seam`: as kGapSeam.
  void resume(uint64_t after, uint64_t sequence, bool seam) noexcept;
  bool paused() const noexcept { return paused_.load(std::memory_order_relaxed); }

  // Makes all that was recorded before readable in the file; waits at most `timeout_ms`. false: not done.
  bool flush(uint32_t timeout_ms) noexcept;
  // Writes the end record and closes. Later calls do nothing. Safe to call twice.
  void finish() noexcept;
  // In a fork child: forgets everything without touching the parent's file.
  void abandon() noexcept;

 private:
  Recorder() = default;

  trace::Writer* writer_ = nullptr;
  const uint64_t started_ns_ = now_ns();
  CallSites* call_sites_ = nullptr;
  std::atomic<bool> paused_{false};
};

}  // namespace reprise
