// The enforcer's answer to hooks that want to know what a buffer holds.
#include "preload/landing/landing.h"
#include "replay/enforcer/enforcer.h"

namespace reprise::replay {

// A plan in force knows what its calls touch, and waiting would break its pace.
bool Enforcer::reads_back() const noexcept { return managing() && !follower().following(); }

bool Enforcer::read_back(const ReadBack& request) noexcept {
  if (!reads_back() || shared_.captures.load(std::memory_order_relaxed) > 0) return false;
  const uint64_t deadline = Landing::now_ns() + request.patience_ns;
  Landing& landing = shared_.landing;
  if (!landing.claim(deadline)) return false;
  const CUresult started = ask_dispatcher(EntryKind::read_back, [&](LogEntry& entry) { entry.read_back = &request; });
  const bool landed = started == CUDA_SUCCESS && landing.wait(deadline);
  if (landed && request.take != nullptr) request.take(request.user, landing.memory());
  landing.release();
  return landed;
}

}  // namespace reprise::replay
