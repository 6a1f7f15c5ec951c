#include "tools/device/twins/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if !defined(__x86_64__)
#error "twins with barriers are written for x86-64: add the switch for this processor here"
#endif

// The registers that a called function must preserve. Signal masks and floating point modes are the same on all stacks.
asm(R"(
.text
.globl reprise_twin_switch
.hidden reprise_twin_switch
.type reprise_twin_switch, @function
reprise_twin_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size reprise_twin_switch, . - reprise_twin_switch
.section .note.GNU-stack, "", @progbits
.text
)");

namespace reprise::sim::twin {

FiberStack::FiberStack() {
  void* memory = mmap(nullptr, kGuardBytes + kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    std::fputs("reprise: no memory for the stack of a kernel's thread\n", stderr);
    std::abort();
  }
  memory_ = static_cast<char*>(memory) + kGuardBytes;
}

void* FiberStack::begin(void (*entry)()) const {
  // Six saved registers, the address to return to, and above it what entry() takes for its own return address: so the
  // stack is aligned in entry() as after a call.
  auto* top = reinterpret_cast<uintptr_t*>(memory_ + kBytes);
  *--top = 0;
  *--top = reinterpret_cast<uintptr_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  return top;
}

}  // namespace reprise::sim::twin
