// The device's memory while it is managed: allocations and frees go to the session of the managed device, or to the
// driver; what the program holds beside counts, and what it is told of the device follows from the budget. Half of the
// enforcer; called by program threads.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "preload/base/config.h"
#include "preload/calls/memory_handler.h"
#include "replay/enforcer/beside.h"
#include "replay/enforcer/enforced_order.h"
#include "replay/enforcer/sessions.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"

namespace reprise::replay {

class EnforcedMemory final : public MemoryHandler {
 public:
  EnforcedMemory(const Config& config, Common* common, Account* account, Sessions* sessions,
                 EnforcedOrder* order) noexcept
      : config_(config), common_(*common), account_(*account), sessions_(*sessions), order_(*order) {}

  CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept override;
  CUresult release(const FreeCall& call) noexcept override;
  bool makes(CUdeviceptr address) const noexcept override;
  CUresult context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept override;
  CUresult peer_allowed(CUdevice device, CUdevice peer) noexcept override;

  bool told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept override;
  CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept override;
  CUresult total_memory(size_t* bytes, CUdevice device) noexcept override;

  bool make_headroom(uint64_t bytes) noexcept override;
  bool make_more_headroom(int refusal) noexcept override;
  CUresult before_beside(BesideCall* call) noexcept override;
  void after_beside(const BesideCall& call, CUresult result) noexcept override;
  void graph_memory(uint32_t instantiated) noexcept override;
  BeforeTaking before_taking() noexcept override;
  void after_taking(const BeforeTaking& before) noexcept override;

 private:
  CUresult release_by_driver(const FreeCall& call) noexcept;
  bool tells_budget(CUdevice device) const noexcept;

  const Config& config_;
  Common& common_;
  Account& account_;
  Sessions& sessions_;
  EnforcedOrder& order_;
  BesideCalls beside_{config_, &common_, &account_};
};

}  // namespace reprise::replay
