// The enforcer's answer to hooks that want to know what a buffer holds.
#include "preload/landing/landing.h"
#include "replay/enforcer/enforcer.h"

namespace reprise::replay {

// A plan in force knows what its calls touch, and waiting would break its pace.
bool Enforcer::reads_back() const noexcept { return managing() && !follower_.following(); }

bool Enforcer::read_back(const ReadBack& request) noexcept {
  if (!reads_back() || shared_.captures.load(std::memory_order_relaxed) > 0) return false;
  const uint64_t deadline = Landing::now_ns() + request.patience_ns;
  Landing& landing = shared_.landing;
  if (!landing.claim(deadline)) return false;
  Waiter& waiter = Waiter::of_this_thread();
  {
    const std::lock_guard lock(submit_mutex_);
    LogEntry* const entry = shared_.command_log.append(EntryKind::read_back);
    entry->read_back = &request;
    waiter.arm();
    entry->waiter = &waiter;
    shared_.command_log.publish(entry);
  }
  shared_.command_log.enter_blocked();
  waiter.wait();
  shared_.command_log.leave_blocked();
  const bool landed = waiter.result() == CUDA_SUCCESS && landing.wait(deadline);
  if (landed && request.take != nullptr) request.take(request.user, landing.memory());
  landing.release();
  return landed;
}

}  // namespace reprise::replay
