// The plan in force, as the executor's parts share it: what of it has failed, and how it ends. Dispatcher thread only.
#pragma once
#include <cstdint>
#include <string>

#include "replay/memory/lanes/lanes.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

class PlanSafety;

struct PlanInForce {
  const PlanIndex* index = nullptr;
  uint32_t number = 0;
  bool active = false;
  bool closing = false;           // diverging: finish what was submitted, begin nothing else
  const char* failure = nullptr;  // a driver call failed: why to diverge
  std::string repeat_failure;     // what `failure` points to where a repeat was not like the first launch
  uint64_t half_ended = 0;        // behind the iteration of which the last work or the last free has been taken in
  PlanSafety* safety = nullptr;
  LaneIndex compute_lane = Lanes::kToDevice;  // of the last op
};

}  // namespace reprise::replay
