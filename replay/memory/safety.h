// What a range of the program's leads to while its tensor's bytes are away, and what follows from that: how tensors
// come and go on demand, what work waits for, where copies find the bytes. One of two, chosen when memory is opened
// (safety/choose.h):
//
//               a tensor is away: its range leads to    comes                     leaves
//     trusted   its old chunks, which others may have   mapped if need be, copy   copy
//     strict    nothing                                 copy, then mapped         unmapped, then copy
//
// Audited safety is strict, but for plans of which all ops are audited. Callers: the pager, copies, what executes calls
// and activates plans, on the dispatcher thread.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "replay/memory/chunks.h"
#include "replay/memory/lanes/uses.h"
#include "replay/memory/tensors.h"

namespace reprise::replay {

class Pager;

class Safety {
 public:
  Safety() = default;
  Safety(const Safety&) = delete;
  Safety& operator=(const Safety&) = delete;
  virtual ~Safety() = default;

  // Makes a tensor resident that is away. Until finish_arrival() it may be on its way.
  virtual CUresult bring_in(Pager& pager, ResidentTensor& tensor) noexcept = 0;
  // Waits for its bytes, if it is on its way; or for all that are: the first error of those that did not arrive.
  virtual CUresult finish_arrival(Pager&, ResidentTensor&) noexcept { return CUDA_SUCCESS; }
  virtual CUresult finish_arrivals(Pager&) noexcept { return CUDA_SUCCESS; }
  // Finishes those whose bytes are there. What did not arrive is away, with its bytes.
  virtual void poll_arrivals(Pager&) noexcept {}
  virtual size_t arriving() const noexcept { return 0; }
  // Can a resident tensor leave without waiting for the device?
  virtual bool may_leave(const ResidentTensor&) noexcept { return true; }
  // As Pager::evict() and Pager::allocated(), of a large tensor or a block.
  virtual CUresult evict(Pager& pager, ResidentTensor& tensor) noexcept = 0;
  virtual CUresult allocated(Pager&, ResidentTensor&, LaneIndex) noexcept { return CUDA_SUCCESS; }
  // A small tensor is where `before` may still be at work.
  virtual CUresult takes_place(const LaneUses& /*before*/, LaneIndex) noexcept { return CUDA_SUCCESS; }
  // What a free of the program has before it, on this stream or anywhere, of which any may have touched the tensor; and
  // the tensor is about to leave.
  virtual LaneUses work_before_free(bool /*stream_ordered*/, CUstream, CUcontext) noexcept { return {}; }
  virtual void freed(ResidentTensor&, const LaneUses& /*work_before*/) noexcept {}
  // Work of the program is about to be issued on the lane; then it is with the driver.
  virtual CUresult before_work(LaneIndex) noexcept { return CUDA_SUCCESS; }
  virtual void issued(LaneIndex) noexcept {}

  // Where a copy finds the bytes of a tensor in `chunks` from `offset` on, and how many lie together from there: at
  // most *bytes.
  virtual CUresult find_run(const ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, uint64_t offset,
                            CUdeviceptr* device, uint64_t* bytes) noexcept = 0;

  // Under a plan. Does a range stay mapped while its bytes are away, and may ops go in another order than the
  // program's?
  virtual bool aliases() const noexcept = 0;
  // The plan counts on a host copy of a tensor that begins in these chunks.
  virtual CUresult make_clean(ResidentTensor&, const std::vector<ChunkIndex>&) noexcept { return CUDA_SUCCESS; }
  // Its bytes are in these chunks, where it begins.
  virtual CUresult begin_at_home(ResidentTensor& tensor, const std::vector<ChunkIndex>& home) noexcept = 0;
  // What is mapped there leads to no bytes of its tensor.
  virtual CUresult clear_away(CUdeviceptr) noexcept { return CUDA_SUCCESS; }
  // A new tensor is about to be there, behind `uses`. False: not yet, or *result is an error.
  virtual bool clear_for_next(CUdeviceptr, const LaneUses& /*uses*/, CUresult*) noexcept { return true; }

  // Gives back what it holds; nothing is mapped any more.
  virtual void close() noexcept {}
};

}  // namespace reprise::replay
