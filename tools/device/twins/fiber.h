// A stack of its own for a thread of a block, and the switch between two of them. Caller: block.cpp.
#pragma once
#include <cstddef>

namespace reprise::sim::twin {

// Saves the caller's registers on its stack and the stack pointer in *save, continues where `load` was saved.
extern "C" void reprise_twin_switch(void** save, void* load);

// A stack with an unmapped page below it; never given back. Stops the process when there is no memory.
class FiberStack {
 public:
  FiberStack();
  // What to load so that the fiber begins in `entry`, which must not return.
  void* begin(void (*entry)()) const;

 private:
  static constexpr size_t kBytes = 256 << 10;
  static constexpr size_t kGuardBytes = 4096;
  char* memory_;
};

}  // namespace reprise::sim::twin
