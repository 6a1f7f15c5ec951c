// Which of the program's memory is mapped while an audit runs: a curtain that is drawn before everything but what the
// next launch is known to touch. Tensors keep their chunks and their bytes; only their addresses lead nowhere. Its
// grain is what moves as one: a large tensor, or a block of small ones. Caller: Auditor, on the dispatcher's thread.
#pragma once
#include <cuda.h>

#include <vector>

#include "replay/memory/memory.h"

namespace reprise::replay {

class Curtain {
 public:
  struct Opening {
    ResidentTensor* mover = nullptr;
    Rights rights = Rights::write;
  };

  // Nothing is mapped but these. The device must be idle. An error: what could not be mapped has no addresses.
  CUresult draw(ManagedMemory& memory, const std::vector<Opening>& openings) noexcept;
  // This is mapped to be read and written, whatever else is.
  CUresult open(ManagedMemory& memory, ResidentTensor& mover) noexcept;
  CUresult open_all(ManagedMemory& memory) noexcept;

 private:
  bool drawn_ = false;  // something may be hidden, or only be read
};

}  // namespace reprise::replay
