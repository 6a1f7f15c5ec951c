#include "replay/queue/events.h"

#include "preload/driver/driver.h"

namespace reprise::replay {

void Events::deferred(CUevent event, Role role) noexcept {
  const std::lock_guard lock(mutex_);
  State& state = pending_[event];
  ++(role == Role::record ? state.records : state.waits);
}

void Events::issued(CUevent event, Role role) noexcept {
  bool destroy = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(event);
    if (found == pending_.end()) return;
    --(role == Role::record ? found->second.records : found->second.waits);
    if (found->second.records != 0 || found->second.waits != 0) return;
    destroy = found->second.destroyed;
    pending_.erase(found);
  }
  if (destroy) driver().cuEventDestroy(event);
}

bool Events::record_pending(CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(event);
  return found != pending_.end() && found->second.records != 0;
}

bool Events::destroy_later(CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(event);
  if (found == pending_.end()) return false;
  found->second.destroyed = true;
  return true;
}

}  // namespace reprise::replay
