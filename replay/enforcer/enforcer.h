// The handler that manages memory: takes the program's calls to the session of the managed device, or to the driver.
// Made once by make_enforcer() when a budget is set, and never destroyed: what it keeps itself outlives every session.
// All functions are called by program threads.
#pragma once
#include "preload/base/config.h"
#include "preload/calls/handler.h"
#include "preload/record/recorder.h"
#include "replay/enforcer/enforced_memory.h"
#include "replay/enforcer/enforced_order.h"
#include "replay/enforcer/run_report.h"
#include "replay/enforcer/sessions.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"

namespace reprise::replay {

// A base, so that the halves are there before the Handler names them.
class EnforcerParts {
 protected:
  EnforcerParts(const Config& settings, Recorder* recorder) noexcept;

  const Config config_;
  Recorder* const recorder_;
  Common common_;
  Account account_{common_, config_.budget.bytes};
  RunReport report_{config_, recorder_, &common_, &account_};
  Sessions sessions_{config_, recorder_, &common_, &account_, &report_};
  EnforcedOrder order_{&common_, &sessions_};
  EnforcedMemory memory_{config_, &common_, &account_, &sessions_, &order_};
};

class Enforcer final : private EnforcerParts, public Handler {
 public:
  Enforcer(const Config& settings, Recorder* recorder) noexcept;

  void finish() noexcept override;
  void abandon() noexcept override;
};

}  // namespace reprise::replay
