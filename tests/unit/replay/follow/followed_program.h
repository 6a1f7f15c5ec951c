// A program of one weight and a loop beside a plan follower: what its tests share.
#pragma once

#include "preload/trace/signature.h"
#include "replay/follow/plan_follower.h"
#include "tests/support/test.h"

namespace reprise::replay {

using plan::CallKind;
inline constexpr uint64_t kChunk = 4096;
inline constexpr uint64_t kSize = 2 * kChunk;
inline constexpr uint64_t kOther = 3 * kChunk;

// A weight that lives, and an iteration of: allocate x, a kernel on both, free x.
class FollowedProgram : public ::testing::Test {
 protected:
  FollowedProgram() {
    shared_.arena_all = {uint64_t{1} << 40, 4096 * kChunk};
    shared_.arena = cut_arena(shared_.arena_all.base, shared_.arena_all.bytes, kChunk);
    shared_.chunk_bytes = kChunk;
    shared_.addresses.open(shared_.arena, kChunk);
    follower_.live().open(kChunk, kChunk);
    weight_ = allocate().address;
  }

  // Its x has this size.
  plan::Plan plan(uint64_t size = kSize) {
    plan::Plan plan;
    plan.chunk_bytes = kChunk;
    plan.tensors.resize(2);
    plan.tensors[0].size = kSize;
    plan.tensors[1].size = size;
    plan.tensors[0].chunk_count = 2;
    plan.tensors[1].chunk_count = static_cast<uint32_t>(size / kChunk);
    plan.tensors[1].allocate_call = 0;
    plan.tensors[1].free_call = 2;
    plan.calls.resize(3);
    plan.calls[0].kind = CallKind::allocate;
    plan.calls[0].tensor = plan.calls[2].tensor = 1;
    plan.calls[0].signature = trace::allocate_signature(trace::Origin::alloc, size);
    plan.calls[1].signature = 5;
    plan.calls[1].name = "a_kernel";
    plan.calls[1].duration_ns = plan.compute_ns = 1000;
    plan.calls[1].accesses = {{0, trace::kAccessRead, 0, 0}, {1, trace::kAccessWrite, 0, 0}};
    plan.calls[2].kind = CallKind::free;
    plan.calls[2].signature = trace::free_signature(trace::Origin::alloc, size);
    plan.vertices.resize(2);
    plan.calls[1].vertex = 0;
    plan.calls[2].vertex = 1;
    plan.vertices[0].call = 1;
    plan.vertices[1].kind = plan::VertexKind::release;
    plan.vertices[1].call = 2;
    plan.vertices[1].tensor = 1;
    plan.order = {0, 1};
    return plan;
  }
  void use_plan() {
    std::string why;
    ASSERT_TRUE(make_plan_index(plan(), shared_.arena.plan, kChunk, &index_, &why)) << why;
    follower_.use(&index_);
  }
  // A second one, whose addresses lie behind those of the first.
  void use_beside(plan::Plan plan, std::optional<uint32_t> replaces = {}) {
    std::string why;
    const uint64_t at = index_.ranges.base + index_.ranges.bytes - shared_.arena.plan.base;
    ASSERT_TRUE(make_plan_index(std::move(plan), shared_.arena.plan, kChunk, &other_, &why, plan::Safety::trusted, at))
        << why;
    follower_.use(&other_, replaces);
  }

  FollowedCall allocate(uint64_t size = kSize) {
    AllocateCall call{};
    call.allocation = ids_ + 1;
    call.size = size;
    call.origin = trace::Origin::alloc;
    FollowedCall followed = follower_.allocate(call);
    if (!followed.planned) followed.address = shared_.addresses.allocate(size);
    live_.push_back({++ids_, followed.address, size});
    if (followed.cast != nullptr) cast_ = *followed.cast;
    follower_.live().add(ids_, {followed.address, size});
    return followed;
  }
  FollowedCall kernel(uint64_t signature = 5, bool blind = false) {
    return kernel_on({weight_, live_.back().address}, signature, blind);
  }
  FollowedCall kernel_on(const std::vector<CUdeviceptr>& addresses, uint64_t signature = 5, bool blind = false) {
    std::vector<Access> accesses;
    for (const CUdeviceptr address : addresses) {
      accesses.emplace_back();
      accesses.back().address = address;
      for (const Allocation& one : live_) {
        if (one.address == address) accesses.back().allocation = one.id;
      }
    }
    Command command{};
    command.op = index_.plan.calls.empty() ? trace::OpKind::other : index_.plan.calls[1].op;
    command.signature = signature;
    command.accesses = accesses.data();
    command.access_count = static_cast<uint32_t>(accesses.size());
    command.name = "some_kernel";
    command.blind = blind;
    return follower_.op(command);
  }
  FollowedCall free() {
    const Allocation gone = live_.back();
    live_.pop_back();
    FreeCall call{};
    call.allocation = gone.id;
    call.address = gone.address;
    call.size = gone.size;
    call.origin = trace::Origin::alloc;
    const FollowedCall followed = follower_.free(call);
    follower_.live().remove(gone.id);
    if (!shared_.arena.plan.contains(gone.address)) shared_.addresses.release(gone.address, gone.size);
    return followed;
  }
  // True when all calls were the plan's.
  bool iteration() {
    bool planned = allocate().planned;
    planned = kernel().planned && planned;
    return free().planned && planned;
  }

  struct Allocation {
    uint64_t id;
    CUdeviceptr address;
    uint64_t size;
  };
  Common common_;
  Account account_{common_};
  Shared shared_{&common_, &account_};
  std::vector<CUdeviceptr> cast_;  // of the plan that began last, with an allocation
  PlanFollower follower_{&shared_};
  PlanIndex index_;
  PlanIndex other_;
  std::vector<Allocation> live_;
  uint64_t ids_ = 0;
  CUdeviceptr weight_ = 0;
};

}  // namespace reprise::replay
