#include "replay/audit/curtain.h"

#include <algorithm>

namespace reprise::replay {

CUresult Curtain::draw(ManagedMemory& memory, const std::vector<Opening>& openings) noexcept {
  drawn_ = true;
  CUresult result = CUDA_SUCCESS;
  const auto set = [&](ResidentTensor& mover, Rights rights) {
    if (!mover.is_resident() || memory.mappings.find(mover.base) == nullptr) return;
    const CUresult changed = memory.mappings.set_rights(mover.base, rights);
    if (result == CUDA_SUCCESS) result = changed;
  };
  memory.for_each_mover([&](ResidentTensor& mover) {
    const auto is_it = [&mover](const Opening& opening) { return opening.mover == &mover; };
    if (std::none_of(openings.begin(), openings.end(), is_it)) set(mover, Rights::none);
  });
  for (const Opening& opening : openings) set(*opening.mover, opening.rights);
  return result;
}

CUresult Curtain::open(ManagedMemory& memory, ResidentTensor& mover) noexcept {
  if (!drawn_ || !mover.is_resident() || memory.mappings.find(mover.base) == nullptr) return CUDA_SUCCESS;
  return memory.mappings.set_rights(mover.base, Rights::write);
}

CUresult Curtain::open_all(ManagedMemory& memory) noexcept {
  if (!drawn_) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  memory.for_each_mover([&](ResidentTensor& mover) {
    const CUresult opened = open(memory, mover);
    if (result == CUDA_SUCCESS) result = opened;
  });
  drawn_ = result != CUDA_SUCCESS;
  return result;
}

}  // namespace reprise::replay
