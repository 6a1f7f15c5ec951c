// How far the work on each lane is: positions handed out, the markers behind them, and which of them the driver is
// known to have completed. Whether the device has failed, too. Base of Lanes, which says what waits for what.
// Dispatcher thread only.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "replay/memory/lanes/uses.h"

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

  // Positions behind the last that is marked.
  uint64_t unmarked() const noexcept { return issued - (markers.empty() ? completed : markers.back().position); }
};

class LaneProgress {
 public:
  // Makes a context current for the calling thread, if it is not: the program's work is issued in its own context, an
  // event is recorded in that of its stream. nullptr: leaves it.
  CUresult enter(CUcontext context) noexcept;
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
  // How many stream captures of the program are open, counted by others. An event that is recorded on a captured stream
  // belongs to the graph. So all lanes are marked before a stream begins to capture or joins a capture, and while
  // captures are open every position is marked when it is handed out.
  void watch_captures(const std::atomic<int>* open) noexcept { open_captures_ = open; }
  CUresult mark_all() noexcept;

  // Learns from the driver which positions are complete, and makes the markers that it refused. It blocks only where
  // one is refused again.
  void poll() noexcept;
  // Is the use complete, as far as poll() and the waits know?
  bool known_complete(LaneUse use) const noexcept { return lanes_[use.lane].completed >= use.position; }
  bool known_complete(const LaneUses& uses) const noexcept;
  // The same, after asking the driver.
  bool complete(LaneUse use) noexcept;
  bool complete(const LaneUses& uses) noexcept;
  // Where each lane stands now whose work is not known to be complete.
  std::vector<LaneUse> outstanding() const noexcept;

  // The first error that left the context unusable: all positions count as complete then, and none is done. A call
  // that was refused otherwise answers its own error and leaves nothing here.
  CUresult fault() const noexcept { return fault_; }
  // Work is with the driver that will never be complete: nothing waits for anything from now on, and nothing may be
  // issued any more. fault() is this one.
  void give_up(CUresult fault) noexcept;
  bool given_up() const noexcept { return given_up_; }

 protected:
  bool captures_open() const noexcept { return open_captures_ != nullptr && open_captures_->load() > 0; }
  // Blocks until all work of the lane is complete.
  CUresult finish(LaneIndex index) noexcept;
  void poll(Lane& lane) noexcept;
  void note_fault(CUresult result) noexcept {
    if (fault_ == CUDA_SUCCESS) fault_ = result;
  }
  void complete_until(Lane& lane, uint64_t position) noexcept;
  // The first marker at or behind the position, recorded now if there is none. nullptr: the driver refused, or (with
  // *error CUDA_SUCCESS) the position turned out to be complete.
  const Marker* marker_for(LaneIndex index, uint64_t position, CUresult* error) noexcept;
  // The context is about to end, and is current.
  void destroy_events(CUcontext context) noexcept;

  std::deque<Lane> lanes_;
  CUcontext current_ = nullptr;  // of the dispatcher's thread

 private:
  void pay_marker(LaneIndex index) noexcept;

  std::map<CUcontext, std::vector<CUevent>> spare_events_;
  const std::atomic<int>* open_captures_ = nullptr;
  CUresult fault_ = CUDA_SUCCESS;
  bool given_up_ = false;
};

}  // namespace reprise::replay
