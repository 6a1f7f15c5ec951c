// Turns a bad access (SIGSEGV, SIGBUS) of a kernel or copy into a return value, as the memory management unit of a GPU
// turns it into an error. Signals of other threads, and of the program's own code, go to the handler that was there.
// Callers: cuInit; launches, copies and stream memory operations.
#pragma once
#include <cstdint>

namespace reprise::sim {

// Installs the handlers unless they are in place; keeps what was there to chain to.
void install_trap() noexcept;

// Where this thread's last bad access went.
uint64_t bad_address() noexcept;

// Runs body(argument); false when it accessed memory badly. What it held on the stack is not destroyed then.
bool run_trapped(void (*body)(void*), void* argument) noexcept;

template <typename Body>
bool run_trapped(Body& body) noexcept {
  return run_trapped([](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
}

}  // namespace reprise::sim
