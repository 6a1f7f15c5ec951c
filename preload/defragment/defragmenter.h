// `reprise run --defragment`: large allocations of the program come from the stitching allocator, everything else of it
// goes straight to the driver. No recording, no plan. Made by entry when REPRISE_DEFRAGMENT is set; called by the
// memory and stream hooks, from any thread. Decisions: docs/decisions/0012.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "preload/base/config.h"
#include "preload/defragment/device_memory.h"
#include "preload/defragment/stitch/stitcher.h"
#include "preload/tracking/allocations.h"

namespace reprise {

class Defragmenter {
 public:
  explicit Defragmenter(const Config& config) noexcept : config_(config) {}

  // As the driver's functions of these names. Streams are explicit handles. allocate_async() must not be called while
  // something is captured, release_async() not on a stream that is.
  CUresult allocate(CUdeviceptr* address, size_t bytes) noexcept;
  CUresult allocate_async(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept;
  CUresult release(CUdeviceptr address) noexcept;
  CUresult release_async(CUdeviceptr address, CUstream stream) noexcept;
  CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept;

  // Its handle will mean nothing any more, or another stream.
  void stream_destroyed(CUstream stream) noexcept;
  // The program did something that memory of ours cannot take part in: new memory comes from the driver.
  void pass_on(const char* why) noexcept;

  // Process exit: what is told at the end. Allocations go on being served.
  void finish() noexcept;

 private:
  enum class State : int { closed, open, passing };
  static constexpr uint32_t kMaxStreams = 256;

  bool serves(size_t bytes) noexcept;
  bool open(CUcontext context) noexcept;
  const char* set_up(CUcontext context) noexcept;
  template <typename Forward>
  CUresult forward(Forward ask) noexcept;
  CUresult take(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept;
  bool ordered(const stitch::Grant& grant, CUstream stream) noexcept;
  CUresult settle(uint32_t mark) noexcept;
  stitch::Tag tag_of(CUstream stream) noexcept;

  const Config& config_;
  std::atomic<State> state_{State::closed};
  // Of all below. Held across the driver's mapping calls, and across a wait only when something is unmapped that was
  // freed without waiting.
  std::mutex mutex_;
  DeviceMemory device_;
  stitch::Stitcher stitcher_;
  CUcontext context_ = nullptr;
  CUevent event_ = nullptr;             // recorded and waited for at once, again and again
  CUstream streams_[kMaxStreams] = {};  // tag - 1 -> stream; nullptr: destroyed
  uint32_t stream_count_ = 0;
  uint64_t waits_ = 0;                          // reuse that had to wait for other work
  void (*note_)(uint64_t, uint64_t) = nullptr;  // the simulated device wants to know tensors' extents
  void (*forget_)(uint64_t) = nullptr;
};

}  // namespace reprise
