// From on demand into a plan and back: chooses a physical chunk for each chunk of the plan, maps every home, brings the
// bytes of the persistent tensors to where the plan starts. Only here does a plan without remaps cost VMM calls.
// Caller: the plan executor, on the dispatcher thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

// Why a plan could not be entered.
struct Refusal {
  std::string why;
  bool short_of_memory = false;  // with more of it, of the device or the host, it might be
  bool by_driver(const char* what, CUresult result) noexcept;
  bool device_failed() noexcept;
};

class Activation {
 public:
  Activation(Shared* shared, ManagedMemory* memory, Pager* pager) noexcept
      : shared_(*shared), memory_(*memory), pager_(*pager) {}

  // All earlier entries of the log are issued. On success the device is idle and in the plan's start state; on failure
  // the on-demand mode can go on, and *why says what is missing. The command's payload are the addresses of what stands
  // for the persistent tensors.
  bool enter(const PlanIndex* plan_index, const Command& cast, Refusal* why) noexcept;
  // Waits for the device and leaves the memory as the pager expects it.
  void exit() noexcept;

  // After exit(): forgets the tensors that the program has freed, in handover and not allocated anew, or kept by the
  // plan.
  void forget_freed() noexcept;

  // The live object of a plan tensor: persistent ones always, transient ones between allocate and release.
  ResidentTensor* tensor(uint32_t index) const noexcept { return tensors_[index]; }
  // An instance of a transient tensor begins (it gets the plan's host slot for it) and ends. `size`: as the program
  // asked, which may be less than what the place is for.
  ResidentTensor* allocate(uint32_t index, uint64_t allocation, uint64_t size) noexcept;
  // `last`: for strict safety, the work before the free, of which any may have touched it unseen.
  void release(uint32_t index, const LaneUses& last = {}) noexcept;
  // Strict safety: before allocate(), what is mapped in the tensor's range since it lived there last is unmapped, where
  // that may not stay. False: work still uses it, try again; or *result is an error.
  bool clear_range(uint32_t index, CUresult* result) noexcept;
  // Physical chunks of one of the plan's placements, in address order.
  const std::vector<ChunkIndex>& chunks_of(uint32_t placement) const noexcept { return placements_[placement]; }

 private:
  bool settle() noexcept;
  void change_to(const PlanIndex* plan_index) noexcept;
  bool bind_persistent(const Command& cast, Refusal* why) noexcept;
  bool make_chunks(Refusal* why) noexcept;
  void assign_current_chunks() noexcept;
  bool hold_blocks(Refusal* why) noexcept;
  void let_go_of_blocks() noexcept;
  bool vacate(Refusal* why) noexcept;
  bool map_homes(Refusal* why) noexcept;
  bool ensure_kept_slot(size_t index) noexcept;
  bool make_slots(Refusal* why) noexcept;
  bool load(Refusal* why) noexcept;
  bool may_stay_mapped(uint32_t index) const noexcept;
  CUdeviceptr base_of(uint32_t index) const noexcept;
  bool in_place(uint32_t index) noexcept;
  const std::vector<ChunkIndex>* home(uint32_t index) const noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Pager& pager_;
  const PlanIndex* plan_index_ = nullptr;
  std::vector<ChunkIndex> chunks_;  // by plan chunk; kept between activations of the same plan
  std::vector<std::vector<ChunkIndex>> placements_;
  std::vector<ResidentTensor*> tensors_;  // by plan tensor
  std::vector<LaneUses> freed_after_;     // by plan tensor: transient ones that were away when they were released
  std::vector<HostSlot> slots_;           // by plan tensor: of transient ones, while no instance is live
  std::vector<LaneUse> slot_reads_;       // by plan tensor: when the last copy from that slot is complete
};

}  // namespace reprise::replay
