// Chooses how managed memory is kept safe from accesses that no hook sees. Caller: the dispatcher, when it sets memory
// up.
#pragma once
#include <memory>
#include <utility>

#include "replay/memory/memory.h"
#include "replay/memory/safety/strict.h"
#include "replay/memory/safety/trusted.h"

namespace reprise::replay {

// `strict`: also audited safety. It may have to copy `most_chunks` chunks. Errors: the driver's.
inline CUresult make_safety(ManagedMemory* memory, bool strict, uint64_t most_chunks) noexcept {
  auto of_audited = std::make_unique<TrustedSafety>(memory);
  if (!strict) {
    memory->safety.choose(std::make_unique<TrustedSafety>(memory), std::move(of_audited));
    return CUDA_SUCCESS;
  }
  auto chosen = std::make_unique<StrictSafety>(memory);
  const CUresult result = chosen->open(most_chunks);
  memory->safety.choose(std::move(chosen), std::move(of_audited));
  return result;
}

}  // namespace reprise::replay
