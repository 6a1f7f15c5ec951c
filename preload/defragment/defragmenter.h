// `reprise run --defragment`: large allocations of the program come from the stitching allocator, everything else of it
// goes straight to the driver. No recording, no plan. Made by entry when REPRISE_DEFRAGMENT is set; called by the hooks
// of memory, streams and captures, and by those that answer questions about memory, from any thread. Decisions:
// docs/decisions/0012.
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

  // From now on the handle means nothing, or another stream.
  void stream_destroyed(CUstream stream) noexcept;
  // The program asked for something that stitched memory cannot do (`why`): from now on new memory comes from the
  // driver.
  void pass_on(const char* why) noexcept;

  // At process exit: writes the summary. Allocations are served on.
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
  // Guards all below. Held across the driver's mapping calls; held during a wait only when a mapping is taken down
  // whose memory was freed without waiting.
  std::mutex mutex_;
  DeviceMemory device_;
  stitch::Stitcher stitcher_;
  CUcontext context_ = nullptr;
  CUevent event_ = nullptr;             // recorded and waited for at once, again and again
  CUstream streams_[kMaxStreams] = {};  // tag - 1 -> stream; nullptr: destroyed
  uint32_t stream_count_ = 0;
  uint64_t waits_ = 0;  // reuse that had to wait for other work
};

}  // namespace reprise
