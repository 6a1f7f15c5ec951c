#include "tools/device/base/trap.h"

#include <csignal>
#include <mutex>

#include "tools/device/base/thread.h"

namespace reprise::sim {
namespace {

struct sigaction previous_segv;
struct sigaction previous_bus;

void chain(const struct sigaction& previous, int signal, siginfo_t* info, void* machine) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, machine);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // Back to the default: the access is made again and ends the process as it would without this handler.
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
}

void on_bad_access(int signal, siginfo_t* info, void* machine) {
  if (thread_state.trap != nullptr) {
    thread_state.bad_address = reinterpret_cast<uint64_t>(info->si_addr);
    siglongjmp(*thread_state.trap, 1);
  }
  chain(signal == SIGSEGV ? previous_segv : previous_bus, signal, info, machine);
}

void install(int signal, struct sigaction* previous) {
  struct sigaction current;
  if (sigaction(signal, nullptr, &current) != 0) return;
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bad_access) return;
  struct sigaction action = {};
  action.sa_sigaction = on_bad_access;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  *previous = current;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_trap() noexcept {
  static std::mutex mutex;  // its destructor does nothing
  const std::lock_guard lock(mutex);
  install(SIGSEGV, &previous_segv);
  install(SIGBUS, &previous_bus);
}

uint64_t bad_address() noexcept { return thread_state.bad_address; }

__attribute__((noinline)) bool run_trapped(void (*body)(void*), void* argument) noexcept {
  sigjmp_buf buffer;
  sigjmp_buf* const outer = thread_state.trap;
  if (sigsetjmp(buffer, 0) != 0) {
    thread_state.trap = outer;
    return false;
  }
  thread_state.trap = &buffer;
  body(argument);
  thread_state.trap = outer;
  return true;
}

}  // namespace reprise::sim
