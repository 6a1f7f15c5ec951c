// Device memory that the program holds around what is managed: calls that make some or give some back, and what it
// counts for (decision 0061). Caller: the enforcer, around such calls.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/base/config.h"
#include "preload/calls/command.h"
#include "preload/driver/beside.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"
#include "replay/session/session.h"

namespace reprise::replay {

class BesideCalls {
 public:
  BesideCalls(const Config& config, Common* common, Account* account) noexcept
      : config_(config), common_(*common), account_(*account) {}

  // `session`: the one that manages the call's device, or nullptr; `before_any`: no memory is managed yet, or just now.
  CUresult before(BesideCall* call, Session* session, bool before_any) noexcept;
  void after(const BesideCall& call, CUresult result, Session* session) noexcept;
  // The driver has made it: Reprise manages one device, or none. `managed`: it is that one's memory.
  void allocated_elsewhere(const AllocateCall& call, bool managed) noexcept;

 private:
  CUresult make_room_for(BesideCall* call, Session* session) noexcept;
  CUresult refuse(const BesideCall& call, uint64_t held) noexcept;
  void tell_refused(const BesideCall& call, Session* session) noexcept;

  const Config& config_;
  Common& common_;
  Account& account_;
};

}  // namespace reprise::replay
