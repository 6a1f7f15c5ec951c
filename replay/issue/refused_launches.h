// Launches that the driver has refused, by name: their calls answer its error, and libraries swallow that, so that a
// program fails later, or prints what it would not have. Where memory is short Reprise may be why: that is told at
// once. Other errors are the program's own, which may only try what a device can do: of them the first is told with a
// program that ends in an error. Callers: the executors, behind each launch; the enforcer, at the end.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "replay/issue/shared.h"

namespace reprise::replay {

class RefusedLaunches {
 public:
  explicit RefusedLaunches(Shared* shared) noexcept : shared_(*shared) {}

  // What the driver has answered to the entry's call.
  void answered(const LogEntry& entry, CUresult result) noexcept {
    if (__builtin_expect(result != CUDA_SUCCESS, false)) refused(entry, result);
  }
  // "gemm (CUDA error 1)" and how many there were behind it; empty: none.
  std::string told() const noexcept;

 private:
  void refused(const LogEntry& entry, CUresult result) noexcept;

  Shared& shared_;
  std::atomic<uint64_t> count_{0};
  Note first_;
};

}  // namespace reprise::replay
