#include "tools/lab/probe/measure/limit.h"

#include <atomic>
#include <csignal>

namespace reprise::probe {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void request_stop(int /*signal*/) { stop_requested.store(true, std::memory_order_relaxed); }

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool interrupted() { return stop_requested.load(std::memory_order_relaxed); }

}  // namespace reprise::probe
