// Threads of our own in the program's process: they see none of its signals, and the hooks pass their
// driver calls through uncounted.
// Callers: the dispatcher, the planner process.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

#include "preload/base/guard.h"

namespace reprise::replay {

// False when the system gives no thread.
template <typename Body>
bool start_thread(const char* name, Body body) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread([name, body = std::move(body)]() mutable {
      mark_internal_thread();
      pthread_setname_np(pthread_self(), name);
      body();
    }).detach();
  } catch (...) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace reprise::replay
