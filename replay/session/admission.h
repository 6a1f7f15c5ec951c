// May the program have this memory? All of an allocation has to fit on the device at once, and what does not fit there
// beside the others on the host, whose memory is pinned ahead. Caller: the session, for calls of program threads.
#pragma once
#include <cstdint>

#include "replay/issue/shared.h"
#include "replay/plans/plan_session.h"

namespace reprise::replay {

class Admission {
 public:
  Admission(const Config& config, Shared* shared, PlanSession* plans) noexcept
      : config_(config), shared_(*shared), plans_(*plans) {}

  // Before the submission lock is taken.
  void pin_ahead(uint64_t more) noexcept;

  // Under it.
  uint64_t limit_bytes() const noexcept;
  // Chunks that may live at once without anything having to leave the device. Of a percentage of what is at most alive:
  // all that ever do, or none.
  uint64_t room_chunks() const noexcept;
  bool can_be_used(uint64_t bytes) noexcept;
  uint64_t missing_host_bytes(uint64_t more) noexcept;
  CUresult refuse(const AllocateCall& call, uint64_t missing_host_bytes) noexcept;
  bool may_not_fit(const Command& command) const noexcept;

 private:
  uint64_t host_bytes_for(uint64_t more, uint64_t moving) const noexcept;

  const Config& config_;
  Shared& shared_;
  PlanSession& plans_;
};

}  // namespace reprise::replay
