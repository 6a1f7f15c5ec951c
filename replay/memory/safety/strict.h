// Strict safety: an address of a live tensor leads to the tensor's bytes or to nothing, so that work which touches it
// unseen finds the right bytes, or faults. Whatever is mapped may have been written by such work, so every tensor that
// leaves is copied, or its digest is that of its host copy.
#pragma once
#include <vector>

#include "replay/memory/lanes/fence.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"
#include "replay/memory/safety.h"
#include "replay/memory/safety/window.h"

namespace reprise::replay {

class StrictSafety final : public Safety {
 public:
  explicit StrictSafety(ManagedMemory* memory) noexcept : memory_(*memory) {}
  // Errors: the driver's.
  CUresult open(uint64_t most_chunks) noexcept { return window_.open(&memory_.chunks, &memory_.mappings, most_chunks); }
  void close() noexcept override { window_.close(); }

  CUresult bring_in(Pager& pager, ResidentTensor& tensor) noexcept override;
  CUresult finish_arrival(Pager& pager, ResidentTensor& tensor) noexcept override;
  CUresult finish_arrivals(Pager& pager) noexcept override;
  void poll_arrivals(Pager& pager) noexcept override;
  size_t arriving() const noexcept override { return arrivals_.size(); }
  bool may_leave(const ResidentTensor& tensor) noexcept override;
  CUresult evict(Pager& pager, ResidentTensor& tensor) noexcept override;
  CUresult allocated(Pager& pager, ResidentTensor& tensor, LaneIndex lane) noexcept override;
  CUresult takes_place(const LaneUses& before, LaneIndex lane) noexcept override;
  LaneUses work_before_free(bool stream_ordered, CUstream stream, CUcontext context) noexcept override;
  void freed(ResidentTensor& tensor, const LaneUses& work_before) noexcept override;
  CUresult before_work(LaneIndex lane) noexcept override { return fence_.before_work(memory_.lanes, lane); }
  void issued(LaneIndex lane) noexcept override;

  CUresult find_run(const ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, uint64_t offset,
                    CUdeviceptr* device, uint64_t* bytes) noexcept override;

  bool aliases() const noexcept override { return false; }
  CUresult begin_at_home(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept override;
  CUresult clear_away(CUdeviceptr base) noexcept override { return memory_.mappings.unmap(base); }
  bool clear_for_next(CUdeviceptr base, const LaneUses& uses, CUresult* result) noexcept override;

 private:
  // A tensor on its way in: it has its chunks, and its bytes are being copied there.
  struct Arrival {
    ResidentTensor* tensor = nullptr;
    std::vector<ChunkIndex> chunks;
    LaneUses ready;  // when its bytes are there
  };
  CUresult show(Pager& pager, const std::vector<ChunkIndex>& chunks) noexcept;
  CUresult begin_arrival(Pager& pager, ResidentTensor& tensor, std::vector<ChunkIndex> chunks) noexcept;
  CUresult land(Pager& pager, const Arrival& arrival, CUresult result, const LaneUses& ready) noexcept;
  void map_ahead(Pager& pager, ResidentTensor& tensor) noexcept;

  ManagedMemory& memory_;
  Window window_;
  std::vector<Arrival> arrivals_;
  // The work before frees of tensors that were away: it has faulted, or is complete, before an address that they had
  // leads anywhere again.
  LaneUses before_frees_away_;
  // What used the chunks of new tensors before: all work behind the allocation waits for it.
  Fence fence_;
};

}  // namespace reprise::replay
