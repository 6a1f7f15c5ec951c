// Writes a trace from the victim process: hooks append records to per-thread buffers, one background thread compresses
// and writes chunks. noexcept throughout; on any failure it switches itself off and says so once on stderr.
#pragma once
#include <cstdint>

#include "preload/trace/format.h"

namespace reprise::trace {

class Writer {
 public:
  // Opens (truncates) `path`. Returns nullptr with *why pointing to a static or leaked line when it cannot. The object
  // is leaked on purpose: the process may call us after static destructors.
  static Writer* open(const char* path, const char** why) noexcept;

  // Space for one record of `bytes` (a multiple of 8) in this thread's buffer, or nullptr (record dropped, counted).
  // The caller fills it and calls commit(); nothing else may happen on this thread in between. No lock, no system call,
  // and no allocation but for a thread's first record.
  void* reserve(uint32_t bytes) noexcept;
  void commit() noexcept;

  // Makes everything committed so far readable in the file (waits for the writer thread, at most `timeout_ms`).
  // Returns false on time-out or when writing has failed.
  bool flush(uint32_t timeout_ms) noexcept;

  // Writes the end record and closes. Further reserve() calls give nullptr. Safe to call twice.
  void close() noexcept;

  // In a fork child: drops everything without touching the parent's file.
  void abandon() noexcept;

  uint64_t dropped() const noexcept;

 private:
  Writer() = default;
  struct State;
  State* state_ = nullptr;
};

}  // namespace reprise::trace
