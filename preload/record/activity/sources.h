// The three sources behind choose_activity_source(), for it and for tests. Each is one object per process, never
// destroyed; nullptr when this process has nothing to build it on (no simulated driver, no CUPTI library, no driver).
#pragma once
#include "preload/record/activity/source.h"

namespace reprise {

// The simulated device's own records (preload/driver/sim_abi.h), found by name in the driver.
ActivitySource* simulated_activity_source() noexcept;
// CUPTI activity records: the most exact on a GPU, if no other tool of the process holds CUPTI.
ActivitySource* cupti_activity_source() noexcept;
// A timing event before and after each op. Works everywhere, costs two driver calls per op and includes the gap between
// the events and the op (1-4 us on a GPU).
ActivitySource* event_activity_source() noexcept;

}  // namespace reprise
