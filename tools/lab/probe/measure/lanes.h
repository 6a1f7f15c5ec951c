// Several kinds of work on the device at once, each on a stream of its own (a copy direction, a kernel), and the rate
// of each while all of them run. Caller: section 4.
#pragma once
#include <functional>
#include <vector>

#include "tools/lab/probe/measure/device.h"

namespace reprise::probe {

struct Lane {
  Stream stream;
  std::function<Status(CUstream)> issue;  // one item of work
  double item_ns = 0;                     // alone, found by calibrate()
};

// The items per second of each lane inside the time in which every lane was at work, for about `window_ns`.
// Calibrates lanes that are not yet.
Result<std::vector<double>> run_lanes(const Device& device, std::vector<Lane>& lanes, double window_ns);

// Finds item_ns: the time of one item when the device does nothing else.
Status calibrate(const Device& device, Lane& lane);

}  // namespace reprise::probe
