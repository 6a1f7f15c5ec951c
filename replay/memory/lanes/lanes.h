// What a stream promises: work on one lane completes in order, and a position on it can be waited for, by other lanes
// or by the host. Every stream that work is issued to is a lane; two more carry the transfers, one the digests of what
// leaves, so that no transfer waits behind one of those for the program's kernels. Dispatcher thread only.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "replay/memory/lanes/lane_progress.h"
#include "replay/memory/lanes/uses.h"

namespace reprise::replay {

class Lanes : public LaneProgress {
 public:
  static constexpr LaneIndex kToDevice = 0;  // host to device transfers
  static constexpr LaneIndex kToHost = 1;    // device to host transfers
  static constexpr LaneIndex kDigests = 2;   // of what leaves
  static constexpr LaneIndex kOwn = 3;       // so many of ours, before those of the program
  static constexpr bool is_ours(LaneIndex lane) noexcept { return lane < kOwn; }

  // Creates our streams in the current context, which is `context`: ours.
  CUresult open(CUcontext context) noexcept;
  // Makes our context current, where all work of our own goes.
  CUresult enter_own() noexcept { return enter(lanes_[kToDevice].context); }

  // The lane of a program stream; found or made. The context must be current.
  LaneIndex lane_of(CUstream stream, CUcontext context) noexcept;
  // Is the stream a lane, and has the program not destroyed it?
  bool is_open(CUstream stream, CUcontext context) const noexcept { return by_stream_.count({stream, context}) != 0; }
  // The program destroys the stream: destroys it, keeps the lane for waits that are still to come.
  CUresult close(CUstream stream, CUcontext context) noexcept;
  // The context is about to end: waits for its lanes, then forgets them and destroys what we have made in it.
  void leave(CUcontext context) noexcept;

  // Would later work of `waiter` have to be told to wait for the use? As far as poll() and the waits know.
  bool awaits(LaneIndex waiter, LaneUse use) const noexcept {
    const std::vector<uint64_t>& waited = lanes_[waiter].waited;
    return use.lane != waiter && !known_complete(use) && (use.lane >= waited.size() || waited[use.lane] < use.position);
  }
  // Does the driver itself keep the work of both in the order in which it was issued?
  bool in_driver_order(LaneIndex a, LaneIndex b) const noexcept {
    const Lane& first = lanes_[a];
    const Lane& second = lanes_[b];
    return first.context == second.context && ((first.legacy && second.blocking) || (first.blocking && second.legacy));
  }
  // Later work of `waiter` starts after `uses` are complete, ordered on the device.
  CUresult wait_on(LaneIndex waiter, const LaneUses& uses) noexcept;
  CUresult wait_on(LaneIndex waiter, LaneUse use) noexcept;
  // Blocks the host until `uses` are complete.
  CUresult host_wait(const LaneUses& uses) noexcept;
  // Blocks until all work is complete: every position is, then. While captures are open it waits for the lanes alone,
  // because waiting for a context would end them.
  CUresult synchronize() noexcept;

 private:
  std::map<std::pair<CUstream, CUcontext>, LaneIndex> by_stream_;  // legacy streams are one per context
};

}  // namespace reprise::replay
