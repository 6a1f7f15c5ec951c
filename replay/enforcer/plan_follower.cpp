#include "replay/enforcer/plan_follower.h"

#include <algorithm>

#include "preload/base/log.h"
#include "preload/trace/signature.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kPatience = 3;      // early failures before boundaries are skipped
constexpr uint64_t kMostSkipped = 64;  // boundaries
}  // namespace

using plan::CallKind;

void PlanFollower::allocated(uint64_t allocation, CUdeviceptr address, uint64_t size) noexcept {
  live_[allocation] = {address, size};
  live_bytes_ += size;
  footprint_.allocated(allocation, size);
}

void PlanFollower::freed(uint64_t allocation) noexcept {
  const auto found = live_.find(allocation);
  if (found == live_.end()) return;
  live_bytes_ -= found->second.size;
  footprint_.freed(allocation, found->second.size);
  live_.erase(found);
}

FollowedCall PlanFollower::op(const Command& command) noexcept {
  return step(CallKind::op, command.signature, command.name,
              [&](FollowedCall& step) { return matcher_.op(command, &step.match); });
}

FollowedCall PlanFollower::allocate(const AllocateCall& call) noexcept {
  return step(CallKind::allocate, trace::allocate_signature(call.origin, call.size), "an allocation",
              [&](FollowedCall& step) { return matcher_.allocate(call, &step.match, &step.address); });
}

FollowedCall PlanFollower::free(const FreeCall& call) noexcept {
  return step(CallKind::free, trace::free_signature(call.origin, call.size), "a free",
              [&](FollowedCall& step) { return matcher_.free(call, &step.match); });
}

template <typename Try>
FollowedCall PlanFollower::step(CallKind kind, uint64_t signature, const char* got, Try match) noexcept {
  FollowedCall step;
  if (following_ && shared_.dispatcher_divergences.load(std::memory_order_acquire) != divergences_seen_) {
    following_ = false;  // the dispatcher has ended the plan and logged why
    open_handovers_ = matcher_.end();
    if (matcher_.iteration() <= began_iteration_) ++early_failures_;
  }
  if (following_) {
    step.planned = match(step);
    if (step.planned) {
      if (step.match.iteration >= next_iteration_) next_iteration_ = step.match.iteration + 1;
      return step;
    }
    diverge(got);
  }
  if (may_begin(kind, signature)) {
    begin();
    step.planned = match(step);
    step.activate = step.planned;
    following_ = step.planned;
    if (step.planned) return step;
  }
  step.ask_planner = detect(signature);
  return step;
}

// The live allocations are the plan's persistent ones, in order, and the call is the plan's first.
bool PlanFollower::may_begin(CallKind kind, uint64_t signature) noexcept {
  if (plan_index_ == nullptr || shared_.plan_unusable.load(std::memory_order_relaxed)) return false;
  const plan::Plan& plan = plan_index_->plan;
  if (plan.calls[0].kind != kind || plan.calls[0].signature != signature) return false;
  // All persistent tensors are alive at the boundary, also where the first call is a free.
  if (live_.size() != plan_index_->persistent_count) return false;
  size_t index = 0;
  for (const auto& [id, live] : live_) {
    if (live.size != plan.tensors[index++].size || shared_.arena.plan.contains(live.address)) return false;
  }
  if (skip_boundaries_ > 0) {
    --skip_boundaries_;
    return false;
  }
  return true;
}

void PlanFollower::begin() noexcept {
  std::vector<CUdeviceptr> persistent;
  persistent.reserve(live_.size());
  for (const auto& [id, live] : live_) persistent.push_back(live.address);
  matcher_.begin(plan_index_, persistent, shared_.arena_all, next_iteration_);
  began_iteration_ = next_iteration_;
  divergences_seen_ = shared_.dispatcher_divergences.load(std::memory_order_acquire);
}

void PlanFollower::diverge(const char* got) noexcept {
  following_ = false;
  open_handovers_ = matcher_.end();
  const bool early = matcher_.iteration() == began_iteration_;
  early_failures_ = early ? early_failures_ + 1 : 0;
  if (early_failures_ >= kPatience) {
    skip_boundaries_ =
        std::min<uint64_t>(uint64_t{1} << std::min<uint64_t>(early_failures_ - kPatience, 6), kMostSkipped);
  }
  on_demand_began_ns_ = 0;
  calls_in_period_ = 0;
  if (matcher_.next() == 0) {
    // A whole number of iterations, then another call: that is how loops end or pause, and no divergence.
    RunLogLine line(run_log::loop_end::line);
    line.add(run_log::loop_end::iteration, matcher_.iteration()).add(run_log::loop_end::got, std::string(got));
    shared_.run_log.write(line);
    return;
  }
  shared_.counters.divergences.fetch_add(1, std::memory_order_relaxed);
  RunLogLine line(run_log::divergence::line);
  line.add(run_log::divergence::iteration, matcher_.iteration())
      .add(run_log::divergence::call, matcher_.next())
      .add(run_log::divergence::expected, matcher_.expected())
      .add(run_log::divergence::got, std::string(got));
  shared_.run_log.write(line);
  log_line(LogLevel::info, "iteration %llu differs from the plan at call %u: expected %s, got %s",
           static_cast<unsigned long long>(matcher_.iteration()), matcher_.next(), matcher_.expected().c_str(), got);
}

void PlanFollower::interrupt(const char* what) noexcept {
  if (following_) diverge(what);
}

bool PlanFollower::detect(uint64_t signature) noexcept {
  if (!watching_ && period_ == 0) return false;
  if (period_ != 0 && ++calls_in_period_ == period_) on_demand_boundary();
  if (!watching_) return false;
  const bool repeats = detector_.add(trace::hash_mix(trace::hash_mix(signature, live_.size()), live_bytes_));
  if (repeats) {
    period_ = detector_.period();
    calls_in_period_ = 0;
    on_demand_began_ns_ = 0;
  }
  return repeats;
}

void PlanFollower::on_demand_boundary() noexcept {
  calls_in_period_ = 0;
  const uint64_t now = RunLogWriter::now_ns();
  if (on_demand_began_ns_ != 0) {
    shared_.counters.iterations_on_demand.fetch_add(1, std::memory_order_relaxed);
    const uint64_t index = next_iteration_++;
    if (shared_.run_log.enabled()) {
      RunLogLine line(run_log::iteration::line);
      line.add(run_log::iteration::index, index)
          .add(run_log::iteration::mode, run_log::iteration::on_demand)
          .add(run_log::iteration::wall_ns, now - on_demand_began_ns_)
          .add(run_log::iteration::calls, period_);
      shared_.run_log.write(line);
    }
  }
  on_demand_began_ns_ = now;
}

}  // namespace reprise::replay
