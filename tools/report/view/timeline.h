// One stretch of time as people look at it: what ran on which engine, and which tensor was where. Made from a plan's
// prediction, from a run log's measured activity, or from a bare trace. Called by the report and the exports.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "tools/report/log/run_log.h"

namespace reprise::report {

enum class Lane : uint8_t { compute = 0, to_device, to_host };
inline constexpr int kLaneCount = 3;
const char* lane_name(Lane lane);

struct Interval {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct Bar {
  Lane lane = Lane::compute;
  Interval time;
  std::string name;
  uint64_t bytes = 0;             // moved; 0 for kernels
  uint32_t tensor = plan::kNone;  // of a transfer that Reprise makes
  uint32_t vertex = plan::kNone;  // of the plan
};

struct Timeline {
  std::string name;  // "Predicted", "Measured (iteration 7)", "Recorded"
  uint64_t span_ns = 0;
  uint64_t begin_ns = 0;   // of a measured iteration: what ran before belongs to the one before
  std::vector<Bar> bars;   // by start
  uint64_t origin_ns = 0;  // what is 0 here, on the device's clock; 0: of what was predicted
  uint64_t iteration = 0;  // of the run: which one was measured
  uint64_t period_ns = 0;  // of what is predicted: when the next one begins; 0: measured
};

// Points of a curve: time, value; the value holds until the next point.
using Curve = std::vector<std::pair<uint64_t, uint64_t>>;

Timeline predicted_timeline(const plan::Plan& plan);
// The one that was measured (measured.h); no bars when none was. Times count from its first record.
Timeline measured_timeline(const plan::Plan& plan, const RunLog& log);
// Of a trace: device times where they were recorded, else the times of the calls, each op lasting until the next one
// of its stream.
Timeline recorded_timeline(const trace::Trace& trace);

// What the measured iteration says of the plan's own ops: how long each took in this run.
struct OwnTimes {
  uint64_t iteration = 0;
  std::vector<uint64_t> ns;  // by call of the plan; where nothing was measured, as recorded
  uint64_t compute_ns = 0;   // of the program's ops in all; 0: nearly nothing was measured
};
OwnTimes own_times(const plan::Plan& plan, const RunLog& log);

// Total time of a lane, and how much of the copy lanes' time has a compute bar at the same time.
struct Busy {
  uint64_t compute_ns = 0;
  uint64_t copy_ns = 0;
  uint64_t both_ns = 0;
};
Busy busy_time(const Timeline& timeline);

// "copy to device", "memset" or the demangled kernel name.
std::string op_name(trace::OpKind kind, const std::string& function);
// The same for an op of a trace.
std::string name_of(const trace::Trace& trace, const trace::OpRecord& op);

}  // namespace reprise::report
