#include "tools/report/view/run_memory.h"

#include "tools/report/view/residency.h"

namespace reprise::report {
namespace {

// A sample is taken whenever the device's memory changes, so the last one holds until the end, where there is one.
Curve device_memory(const RunLog& log) {
  Curve curve;
  for (const RunMemory& sample : log.memory) curve.emplace_back(sample.time_ns, sample.device_bytes);
  if (log.end_ns > curve.back().first) curve.emplace_back(log.end_ns, curve.back().second);
  return curve;
}

bool is_of_run(const Curve& recorded, const RunLog& log) {
  return !recorded.empty() && log.start_ns > 0 && recorded.front().first >= log.start_ns &&
         (log.end_ns == 0 || recorded.back().first <= log.end_ns);
}

// What the program asks for may change between these samples, and behind the last one nothing is known of it. While the
// same run was recorded, its trace has every allocation.
Curve requested_memory(const RunLog& log, Curve curve) {
  for (const RunMemory& sample : log.memory) {
    if (curve.empty() || sample.time_ns > curve.back().first) {
      curve.emplace_back(sample.time_ns, sample.requested_bytes);
    }
  }
  return curve;
}

}  // namespace

RunMemoryCurves run_memory(const RunLog& log, const trace::Trace* trace) {
  if (log.memory.empty()) return {};
  const Curve recorded = trace == nullptr ? Curve() : recorded_memory_by_clock(*trace);
  if (!is_of_run(recorded, log)) return {device_memory(log), requested_memory(log, {}), {}};
  return {device_memory(log), requested_memory(log, recorded), recorded_pauses(*trace)};
}

}  // namespace reprise::report
