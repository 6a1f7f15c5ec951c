#include "replay/follow/known_plan.h"

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"
#include "replay/follow/loop_counter.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {

// Early failures before a plan that the program does go through has to be rehearsed more than once, ...
constexpr uint64_t kPatience = 3;
constexpr uint64_t kMostDoublings = 6;  // ... and twice as often each time, up to here
// Where there was no room for it: so many, and so many doublings at once, as the planner needs iterations in one piece
// to make one that has room.
constexpr uint64_t kPatienceWithoutRoom = 2;
constexpr uint64_t kWithoutRoom = 2;

uint64_t calls_of_program(const plan::Plan& plan) {
  return static_cast<uint64_t>(std::count_if(plan.calls.begin(), plan.calls.end(), [](const plan::Call& call) {
    return !call.inserted && call.recompute_of == plan::kNone;
  }));
}

// "gemm", "an allocation of 1.5 MiB".
std::string name_of(const plan::Plan& plan, const plan::Call& call) {
  if (!call.name.empty()) return call.name;
  const bool frees = call.kind == plan::CallKind::free;
  const std::string what = frees ? phrase<Cause::a_free>() : phrase<Cause::an_allocation>();
  return call.tensor == plan::kNone ? what : what + words<Cause::of_size>(plan.tensors[call.tensor].size);
}

bool is_call(const plan::Call& of_plan, const CalledAs& call) noexcept {
  const bool same =
      has_any_size(of_plan) ? structure_of(of_plan) == call.structure : of_plan.signature == call.signature;
  return of_plan.kind == call.kind && same;
}

std::string calls_text(uint64_t count) {
  return count == 1 ? phrase<Cause::one_call>() : words<Cause::several_calls>(count);
}

}  // namespace

KnownPlan::KnownPlan(const PlanIndex* index, uint32_t loop, uint64_t now) noexcept
    : index_(index), loop_(loop), calls_(words_of(*index).size()), ready_at_(now) {}

bool KnownPlan::first_call_came(const CalledAs& call, size_t alive) noexcept {
  if (!is_call(plan().calls[0], call)) return false;
  start_ = {start_.count + 1, alive, nullptr};
  return true;
}

// All persistent tensors are alive at the boundary, also where the first call is a free.
bool KnownPlan::may_be_first(const CalledAs& call, size_t alive) const noexcept {
  return alive == index_->persistent_count && is_call(plan().calls[0], call);
}

bool KnownPlan::is_due(uint64_t now) const noexcept {
  return early_failures_ == 0 || (was_rehearsed(now) && done_.count >= distance_);
}

void KnownPlan::begun() noexcept {
  begun_ = true;
  under_way_.clear();
}

// Where waiting does not help, it is tried ever later, but never never.
void KnownPlan::left_early(bool lacked_room, bool counts) noexcept {
  ++early_failures_;
  lacks_room_ = lacked_room;
  const uint64_t patience = lacked_room ? kPatienceWithoutRoom : kPatience;
  const uint64_t further = lacked_room ? kWithoutRoom : 0;
  const uint64_t doublings = early_failures_ < patience ? 0 : early_failures_ - patience + further;
  distance_ = counts ? uint64_t{1} << std::min(doublings, kMostDoublings) : 1;
  done_.count = done_.at = 0;
}

void KnownPlan::diverged(bool early, uint32_t call, uint64_t now, std::string why) noexcept {
  left_ = {early && call != 0 ? now : 0, call, std::move(why)};
  if (early) return left_early(false, true);
  early_failures_ = 0;
}

bool KnownPlan::never_lasts() const noexcept {
  if (early_failures_ > 0 && lacks_room_) return true;
  return early_failures_ >= kPatience || (early_failures_ > 0 && done_.count == 0);
}

std::string KnownPlan::why_never_begun() const {
  if (begun_) return {};
  const std::string name = name_of(plan(), plan().calls[0]);
  if (start_.count == 0) {
    const bool of_a_name = plan().calls[0].kind == plan::CallKind::op;  // others of it may come all the time
    return of_a_name ? words<Cause::first_call_never_came_alike>(name) : words<Cause::first_call_never_came>(name);
  }
  const std::string why = words<Cause::first_call_came>(name, start_.count, start_.alive);
  if (start_.alive != index_->persistent_count) return why + words<Cause::plan_begins_with>(index_->persistent_count);
  return start_.difference == nullptr ? why : why + ": " + start_.difference;
}

std::string KnownPlan::where_left() const {
  if (left_.why.empty()) return {};
  return words<Cause::left_at_call>(left_.call, calls_of_program(plan()), left_.why);
}

// A loop that goes on comes by its beginning within an iteration, whatever place of it the program is at; what follows
// the loop, as the frees of a program's end, is not told from it.
std::string KnownPlan::why_too_late(uint64_t now) const {
  const uint64_t calls = calls_of_program(plan());
  if (!begun_) {
    const uint64_t since = now - ready_at_;
    if (since >= 2 * calls) return {};
    return words<Cause::ended_before_next>(calls_text(since));
  }
  const uint64_t since = now - left_.at;
  if (left_.at == 0 || early_failures_ != 1 || since >= 2 * calls) return {};
  return words<Cause::left_at_end>(left_.call, calls, calls_text(since));
}

}  // namespace reprise::replay
