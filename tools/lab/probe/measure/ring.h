// io_uring by its three system calls: a queue of reads and writes of one file. Caller: disk. Nothing needs to be
// installed for it, and a kernel or a sandbox that forbids it is told by open().
#pragma once
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>

#include "preload/trace/status.h"

namespace reprise::probe {

class Ring {
 public:
  static Result<Ring> open(unsigned entries);
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&&) = delete;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Queues one request; there must be room (at most `entries` in flight). `tag` comes back from wait().
  void push(bool write, int descriptor, void* data, size_t bytes, uint64_t offset, uint64_t tag);
  // Hands what was pushed to the kernel and waits for one completion. `result`: bytes, or a negative errno.
  Status wait(uint64_t& tag, int& result);

 private:
  Ring() = default;
  int descriptor_ = -1;
  void* memory_ = nullptr;  // both rings
  size_t memory_bytes_ = 0;
  io_uring_sqe* entries_ = nullptr;
  size_t entries_bytes_ = 0;
  io_uring_params parameters_ = {};
  unsigned pushed_ = 0;  // not handed over yet
};

}  // namespace reprise::probe
