// While it lives, calls of this thread belong to no stream capture that is open anywhere in the process: they neither
// fail because of one, nor break it. Callers: whoever measures, or asks the driver for figures.
#pragma once
#include "preload/driver/driver.h"

namespace reprise {

class OutsideCaptures {
 public:
  OutsideCaptures() noexcept { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideCaptures() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace reprise
