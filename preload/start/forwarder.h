// The handler that changes nothing: every call goes straight to the driver. Caller: entry, to record without a budget.
#pragma once
#include "preload/calls/handler.h"
#include "preload/record/activity/source.h"
#include "preload/record/recorder.h"

namespace reprise {

// `activity` (may be nullptr) brackets what is issued; it and `recorder` (may be nullptr) get device times at
// synchronisations and at the end. The object lives as long as the process.
Handler* make_forwarder(Recorder* recorder, ActivitySource* activity) noexcept;

}  // namespace reprise
