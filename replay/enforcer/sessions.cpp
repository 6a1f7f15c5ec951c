#include "replay/enforcer/sessions.h"

#include <utility>

#include "preload/driver/device_observer.h"

namespace reprise::replay {

bool Sessions::open(CUcontext context, CUdevice device) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (state() != State::closed) return state() == State::open;
  const bool is_first = session_ == nullptr;
  if (is_first) {
    find_device_observer();
    common_.activity.store(choose_activity_source(config_.activity));
    common_.recording.store(recorder_ != nullptr && common_.activity.load() != nullptr);
  }
  ended_ = std::exchange(session_, nullptr);
  session_ = std::make_unique<Session>(config_, recorder_, &common_, &account_, ended_.get());
  if (const CUresult result = session_->open(context, device); result != CUDA_SUCCESS) {
    report_.not_opened(*session_, result, is_first);
    state_.store(State::off, std::memory_order_release);
    return false;
  }
  if (is_first) report_.opened(*session_);
  session_->begin_to_plan();
  last_.store(session_.get(), std::memory_order_release);
  state_.store(State::open, std::memory_order_release);
  return true;
}

CUresult Sessions::close(Session* session, PerThreadStreams* per_thread, void (*freed)(CUdeviceptr) noexcept) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (now() != session) return CUDA_SUCCESS;
  if (const CUresult result = session->end(); result != CUDA_SUCCESS) return result;
  state_.store(State::closed, std::memory_order_release);
  per_thread->forget(session->shared().context);
  for (const CUdeviceptr address : session->leave()) {
    observe_freed(address, 0);
    freed(address);
  }
  return CUDA_SUCCESS;
}

Session* Sessions::of(CUdevice device) const noexcept {
  Session* const session = now();
  return session != nullptr && session->shared().device == device ? session : nullptr;
}

}  // namespace reprise::replay
