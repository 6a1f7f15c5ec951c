// Which session manages memory now. The first allocation of a context opens one, the context's end closes it, and the
// next allocation opens afresh. What is opened is never destroyed while a thread may ask it. Callers: the enforcer's
// halves, on program threads.
#pragma once
#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "preload/base/config.h"
#include "preload/record/recorder.h"
#include "replay/enforcer/per_thread.h"
#include "replay/enforcer/run_report.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"
#include "replay/session/session.h"

namespace reprise::replay {

class Sessions {
 public:
  enum class State : int { closed, open, off };
  Sessions(const Config& config, Recorder* recorder, Common* common, Account* account, RunReport* report) noexcept
      : config_(config), recorder_(recorder), common_(*common), account_(*account), report_(*report) {}

  // The first allocation: from here on all calls go through the command log. Called without locks. False: memory is not
  // managed.
  bool open(CUcontext context, CUdevice device) noexcept;
  // The program ends the session's context: everything is given back.
  CUresult close(Session* session, PerThreadStreams* per_thread, void (*freed)(CUdeviceptr) noexcept) noexcept;
  // Memory is managed no more, and what was managed stays as it is.
  void give_up() noexcept { state_.store(State::off); }

  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  // The one that manages memory now; nullptr: none does.
  Session* now() const noexcept { return state() == State::open ? last() : nullptr; }
  // The same, where it manages this device.
  Session* of(CUdevice device) const noexcept;
  // The one that did last.
  Session* last() const noexcept { return last_.load(std::memory_order_acquire); }
  // Has the program ended a context of a session, or was none open?
  bool context_ended() const noexcept { return state() == State::closed || ended_ != nullptr; }
  // Nothing opens while it is held. It may be held by a thread that opens one.
  std::unique_lock<std::mutex> try_lock() noexcept { return std::unique_lock(open_mutex_, std::try_to_lock); }

 private:
  const Config& config_;
  Recorder* const recorder_;
  Common& common_;
  Account& account_;
  RunReport& report_;
  std::mutex open_mutex_;
  std::unique_ptr<Session> session_;     // of the context that was managed last
  std::unique_ptr<Session> ended_;       // of the one before, which a thread may still be asking
  std::atomic<Session*> last_{nullptr};  // that managed memory, for threads without the lock
  std::atomic<State> state_{State::closed};
};

}  // namespace reprise::replay
