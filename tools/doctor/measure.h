// `reprise doctor --measure`: runs the probe that is installed beside this program and keeps what the planner needs.
// Caller: the doctor command, after its checks.
#pragma once
#include <string>

#include "preload/trace/status.h"

namespace reprise::tools {

struct Measurement {
  bool simulated = false;        // measure the simulated device
  std::string machine;           // where the machine file goes
  std::string sections = "all";  // as for the probe
  double seconds = 0;            // for each section; 0: the probe's own
};

// The probe's table goes to stdout. Its exit code: 0 measured, 1 a section failed, 3 no device. An error: the machine
// file cannot be written, or the probe is not installed.
Result<int> measure(const Measurement& what);

}  // namespace reprise::tools
