// The order of the program's work while memory is managed: each call goes to the session of the managed device, or to
// the driver. Half of the enforcer; called by program threads.
#pragma once
#include <cuda.h>

#include "preload/calls/order_handler.h"
#include "replay/enforcer/per_thread.h"
#include "replay/enforcer/sessions.h"
#include "replay/issue/common.h"

namespace reprise::replay {

class EnforcedOrder final : public OrderHandler {
 public:
  EnforcedOrder(Common* common, const Sessions* sessions) noexcept : common_(*common), sessions_(*sessions) {}

  CUresult submit(const Command& command) noexcept override;

  CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept override;
  CUresult event_query(CUevent event) noexcept override;
  CUresult event_synchronize(CUevent event) noexcept override;
  CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept override;
  CUresult event_destroy(CUevent event) noexcept override;
  CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept override;
  CUresult stream_query(CUstream stream) noexcept override;
  CUresult stream_synchronize(CUstream stream) noexcept override;
  CUresult stream_destroy(CUstream stream) noexcept override;
  CUresult context_synchronize() noexcept override;
  CUstream stand_in(CUstream stream) noexcept override;
  void before_per_thread_call() noexcept override;

  CUresult before_ordered(const char* name, bool all_resident) noexcept override;
  CUresult capture_begin() noexcept override;
  CUresult before_joining_capture() noexcept override;
  void capture_end() noexcept override { common_.captures.fetch_sub(1); }

  bool reads_back() const noexcept override;
  bool read_back(const ReadBack& request) noexcept override;

  PerThreadStreams& per_thread() noexcept { return per_thread_; }

 private:
  static void destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept;

  Common& common_;
  const Sessions& sessions_;
  PerThreadStreams per_thread_{&EnforcedOrder::destroy_stand_in, this};
};

}  // namespace reprise::replay
