// What a stream promises: work on one lane completes in order, and a position on it can be waited for, by other lanes
// or by the host. Every stream that work is issued to is a lane; two more carry the transfers, one the digests of what
// leaves, so that no transfer waits behind one of those for the program's kernels. Dispatcher thread only.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "replay/memory/uses.h"

namespace reprise::replay {

// An event that was recorded behind a position.
struct Marker {
  uint64_t position = 0;
  CUevent event = nullptr;
};

struct Lane {
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  uint64_t issued = 0;           // positions handed out
  uint64_t completed = 0;        // known to be complete
  bool closed = false;           // the program destroyed the stream
  bool owes_marker = false;      // the driver refused the one that was asked for last
  bool legacy = false;           // the legacy stream
  bool blocking = false;         // a stream that waits for the legacy one, and the other way round
  std::deque<Marker> markers;    // not known to be complete, oldest first
  std::vector<uint64_t> waited;  // by lane: this lane's work waits for that position already
};

class Lanes {
 public:
  static constexpr LaneIndex kToDevice = 0;  // host to device transfers
  static constexpr LaneIndex kToHost = 1;    // device to host transfers
  static constexpr LaneIndex kDigests = 2;   // of what leaves
  static constexpr LaneIndex kOwn = 3;       // so many of ours, before those of the program
  static constexpr bool is_ours(LaneIndex lane) noexcept { return lane < kOwn; }

  // Creates our streams in the current context, which is `context`: ours.
  CUresult open(CUcontext context) noexcept;
  // Makes a context current for the calling thread, if it is not: the program's work is issued in its own context, an
  // event is recorded in that of its stream. nullptr: leaves it.
  CUresult enter(CUcontext context) noexcept;
  // The same for ours, where all work of our own goes.
  CUresult enter_own() noexcept { return enter(lanes_[kToDevice].context); }

  // The lane of a program stream; found or made. The context must be current.
  LaneIndex lane_of(CUstream stream, CUcontext context) noexcept;
  // Is the stream a lane, and has the program not destroyed it?
  bool is_open(CUstream stream, CUcontext context) const noexcept { return by_stream_.count({stream, context}) != 0; }
  CUstream stream(LaneIndex lane) const noexcept { return lanes_[lane].stream; }
  Lane& operator[](LaneIndex lane) noexcept { return lanes_[lane]; }
  size_t size() const noexcept { return lanes_.size(); }

  // To be called after each piece of work was issued; returns its position.
  uint64_t advance(LaneIndex lane) noexcept {
    const uint64_t position = ++lanes_[lane].issued;
    if (captures_open()) mark(lane);
    return position;
  }
  // Makes the lane's last position one that can be waited for exactly. Without it a waiter waits for all work that
  // is on the lane when it begins to wait.
  CUresult mark(LaneIndex lane) noexcept;
  // Positions behind the last that is marked.
  uint64_t unmarked(LaneIndex lane) const noexcept {
    const Lane& of = lanes_[lane];
    return of.issued - (of.markers.empty() ? of.completed : of.markers.back().position);
  }
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
  // Learns from the driver which positions are complete, and makes the markers that it refused. It blocks only where
  // one is refused again.
  void poll() noexcept;
  // The first error that left the context unusable: all positions count as complete then, and none is done. A call
  // that was refused otherwise answers its own error and leaves nothing here.
  CUresult fault() const noexcept { return fault_; }
  // Work is with the driver that will never be complete: nothing waits for anything from now on, and nothing may be
  // issued any more. fault() is this one.
  void give_up(CUresult fault) noexcept;
  bool given_up() const noexcept { return given_up_; }
  // Is the use complete, as far as poll() and the waits know?
  bool known_complete(LaneUse use) const noexcept { return lanes_[use.lane].completed >= use.position; }
  bool known_complete(const LaneUses& uses) const noexcept;
  // The same, after asking the driver.
  bool complete(LaneUse use) noexcept;
  bool complete(const LaneUses& uses) noexcept;
  // Where each lane stands now whose work is not known to be complete.
  std::vector<LaneUse> outstanding() const noexcept;
  // Blocks until all work is complete: every position is, then. While captures are open it waits for the lanes alone,
  // because waiting for a context would end them.
  CUresult synchronize() noexcept;

  // How many stream captures of the program are open, counted by others. An event that is recorded on a captured stream
  // belongs to the graph. So all lanes are marked before a stream begins to capture or joins a capture, and while
  // captures are open every position is marked when it is handed out.
  void watch_captures(const std::atomic<int>* open) noexcept { open_captures_ = open; }
  CUresult mark_all() noexcept;

  // The program destroys the stream: destroys it, keeps the lane for waits that are still to come.
  CUresult close(CUstream stream, CUcontext context) noexcept;

  // The context is about to end: waits for its lanes, then forgets them and destroys what we have made in it.
  void leave(CUcontext context) noexcept;

 private:
  bool captures_open() const noexcept { return open_captures_ != nullptr && open_captures_->load() > 0; }
  // Blocks until all work of the lane is complete.
  CUresult finish(LaneIndex index) noexcept;
  void poll(Lane& lane) noexcept;
  void pay_marker(LaneIndex index) noexcept;
  void note_fault(CUresult result) noexcept {
    if (fault_ == CUDA_SUCCESS) fault_ = result;
  }
  void complete_until(Lane& lane, uint64_t position) noexcept;
  // The first marker at or behind the position, recorded now if there is none. nullptr: the driver refused, or (with
  // *error CUDA_SUCCESS) the position turned out to be complete.
  const Marker* marker_for(LaneIndex index, uint64_t position, CUresult* error) noexcept;

  std::deque<Lane> lanes_;
  std::map<std::pair<CUstream, CUcontext>, LaneIndex> by_stream_;  // legacy streams are one per context
  std::map<CUcontext, std::vector<CUevent>> spare_events_;
  CUcontext current_ = nullptr;  // of the dispatcher's thread
  const std::atomic<int>* open_captures_ = nullptr;
  CUresult fault_ = CUDA_SUCCESS;
  bool given_up_ = false;
};

}  // namespace reprise::replay
