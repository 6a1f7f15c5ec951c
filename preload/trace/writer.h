// Writes a trace from the victim process: hooks append records to per-thread buffers, one background thread compresses
// and writes chunks. noexcept throughout; on any failure it switches itself off and says so once on stderr. Callers:
// the recorder, call sites.
#pragma once
#include <cstdint>

#include "preload/trace/format.h"

namespace reprise::trace {

class Writer {
 public:
  // Opens (truncates) `path`. Returns nullptr with *why pointing to a static or leaked line when it cannot. The object
  // is leaked on purpose: the process may call us after static destructors.
  static Writer* open(const char* path, const char** why) noexcept;

  // Space for one record of `bytes` (a multiple of 8, at most kMaxRecordBytes) in this thread's buffer, or nullptr
  // (record dropped, counted). The caller fills it and calls commit(); nothing else may happen on this thread in
  // between. No lock, no allocation but for a thread's first record, no system call but for waking the writer when a
  // buffer becomes half full. A full buffer is waited for, counted. Where the writer thread takes nothing away for
  // kFullWaitMs, records are dropped until there is room again, and a gap record says between which calls.
  void* reserve(uint32_t bytes) noexcept;
  void commit() noexcept;
  static constexpr uint32_t kMaxRecordBytes = 256 * 1024;
  static constexpr uint32_t kFullWaitMs = 2000;

  // Called on the writer thread after it has emptied the buffers; may reserve and commit. For work too slow for the
  // caller's thread. It returns after kSliceMs or soon behind, true when there is more to do: then the buffers are
  // emptied before it goes on. A flush and the end wait for all of it. Set once, before the first record.
  using BackgroundWork = bool (*)(void* user) noexcept;
  static constexpr uint32_t kSliceMs = 2;
  void set_background_work(BackgroundWork work, void* user) noexcept;

  // Makes everything committed so far readable in the file (waits for the writer thread, at most `timeout_ms`).
  // Returns false on time-out or when writing has failed.
  bool flush(uint32_t timeout_ms) noexcept;

  // Writes the end record and closes. Further reserve() calls give nullptr. Safe to call twice.
  void close() noexcept;

  // In a fork child: drops everything without touching the parent's file.
  void abandon() noexcept;

  uint64_t dropped() const noexcept;
  // How often a thread of the program has waited for room in its buffer.
  uint64_t waits() const noexcept;

  struct State;  // of writer.cpp

 private:
  Writer() = default;
  State* state_ = nullptr;
};

}  // namespace reprise::trace
