// What people are told when the device itself fails while memory is managed: which kernel it was, which tensor it
// touched, what helps. A driver says neither, so the kernels that are not known to be complete are named; the simulated
// device says both. Dispatcher thread only.
#pragma once
#include <cuda.h>

#include <array>
#include <cstdint>
#include <string>

#include "replay/issue/shared.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

class FaultReport {
 public:
  FaultReport(Shared* shared, ManagedMemory* memory) noexcept : shared_(*shared), memory_(*memory) {}

  // Work was issued. `name` lives as long as the process.
  void issued(LaneUse use, const char* name) noexcept;
  // Once, when the device has failed: one line on stderr.
  void look() noexcept;
  // Somebody else has told it.
  void told() noexcept { looked_ = true; }
  // Asks the device itself, for rare occasions.
  bool failed() noexcept;

 private:
  struct Issued {
    LaneUse use;
    const char* name = nullptr;
  };
  static constexpr size_t kRemembered = 256;

  CUresult ask() noexcept;
  void tell(CUresult result) noexcept;
  const Issued* oldest_unfinished(uint64_t* count) noexcept;
  bool tell_of_address() noexcept;
  std::string away() const;
  std::string advice() const;

  Shared& shared_;
  ManagedMemory& memory_;
  std::array<Issued, kRemembered> issued_{};
  uint64_t issued_count_ = 0;
  bool looked_ = false;
};

}  // namespace reprise::replay
