// Host memory that the device's bytes are read back to, with a stream of its own and an end to the patience: work that
// spins until the program's next launch must not be waited for. Callers: the two handlers, in read_back().
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace reprise {

class Landing {
 public:
  explicit Landing(uint64_t bytes) noexcept : bytes_(bytes) {}
  ~Landing();
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  // Only one thread has it; until it is released, its driver calls belong to no stream capture that another one opens.
  // Waits at most until `deadline_ns`; false, too, while a read that was given up is not done.
  bool claim(uint64_t deadline_ns) noexcept;
  void release() noexcept;

  // For whoever has it. Makes stream and memory in the current context, where that was not done; false: cannot.
  bool open() noexcept;
  CUstream stream() const noexcept { return stream_; }
  unsigned char* memory() const noexcept { return memory_; }
  // Later work of ours waits for what is on the stream now, without waiting here.
  CUresult order_after(CUstream stream) noexcept;
  // Records the point that wait() waits for.
  CUresult mark() noexcept;
  // False: not reached before the deadline; nothing lands here until it is.
  bool wait(uint64_t deadline_ns) noexcept;

  // The context is about to end, and takes its handles along.
  void leave() noexcept;

  static uint64_t now_ns() noexcept;

 private:
  void close() noexcept;

  const uint64_t bytes_;
  std::atomic<bool> busy_{false};
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // of the thread that has it, before
  bool given_up_ = false;
  uint32_t failures_ = 0;
  unsigned char* memory_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent point_ = nullptr;   // what wait() waits for
  CUevent before_ = nullptr;  // of other streams, used again and again
};

}  // namespace reprise
