// Trusted safety: ranges stay mapped while their bytes are away, so that a tensor which comes back to its chunks costs
// no driver call but the copy. Work that touches unseen what is away finds the bytes of another tensor.
#pragma once
#include <vector>

#include "replay/memory/memory.h"
#include "replay/memory/pager.h"
#include "replay/memory/safety.h"

namespace reprise::replay {

class TrustedSafety final : public Safety {
 public:
  explicit TrustedSafety(ManagedMemory* memory) noexcept : memory_(*memory) {}

  CUresult bring_in(Pager& pager, ResidentTensor& tensor) noexcept override;
  CUresult evict(Pager& pager, ResidentTensor& tensor) noexcept override;
  CUresult find_run(const ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, uint64_t offset,
                    CUdeviceptr* device, uint64_t* bytes) noexcept override;
  bool aliases() const noexcept override { return true; }
  CUresult make_clean(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept override;
  CUresult begin_at_home(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept override;

 private:
  CUresult remap(Pager& pager, const ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept;

  ManagedMemory& memory_;
};

}  // namespace reprise::replay
