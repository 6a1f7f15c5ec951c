// Compares the program's live calls with the plan's, one by one. Caller: the enforcer under its submission lock.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "preload/calls/command.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

// Where the matched call stands.
struct Match {
  uint32_t call = 0;
  uint64_t iteration = 0;
};

// The address range of a tensor that was given up and not renewed: nobody's.
struct OpenHandover {
  CUdeviceptr address = 0;
  uint64_t size = 0;
};

class Matcher {
 public:
  // A new activation: `persistent` are the addresses of the plan's persistent tensors, in its order. The plan's first
  // call is expected next, of iteration `first`. Addresses outside `managed` are not the plan's business.
  void begin(const PlanIndex* plan_index, const std::vector<CUdeviceptr>& persistent, Zone managed,
             uint64_t first) noexcept;

  // Is it the expected call? Then it is consumed: *match, and for allocations the address that the plan gives.
  bool op(const Command& command, Match* match) noexcept;
  bool allocate(const AllocateCall& call, Match* match, CUdeviceptr* address) noexcept;
  bool free(const FreeCall& call, Match* match) noexcept;

  // Nothing more is expected. Returns the ranges that the plan kept for allocations that will not come.
  std::vector<OpenHandover> end() noexcept;

  uint32_t next() const noexcept { return next_; }
  uint64_t iteration() const noexcept { return iteration_; }
  // What the plan expects next, for the run log.
  std::string expected() const;

 private:
  void consume(Match* match) noexcept;
  CUdeviceptr address_of(uint32_t tensor) const noexcept { return addresses_[tensor]; }

  const PlanIndex* plan_index_ = nullptr;
  Zone managed_;
  std::vector<CUdeviceptr> addresses_;  // by plan tensor
  std::vector<uint32_t> handovers_;     // plan tensors whose renewal is still to come
  uint32_t next_ = 0;
  uint64_t iteration_ = 0;
};

}  // namespace reprise::replay
