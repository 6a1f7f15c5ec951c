// Ours: tensors leave and come back as the fluid bound's flows do (bounds/fluid.h), rounded to whole tensors; what the
// rounding leaves over is evicted on demand, furthest next use first.
#include "analyzer/bounds/fluid.h"

#include <algorithm>

#include "analyzer/policies/furthest_next_use.h"
#include "analyzer/policies/planned_periods.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kSegments = 24;      // more follow the iteration more closely, but take much longer
constexpr double kSeconds = 30;         // far more than it takes: what is planned must not depend on the machine's load
constexpr double kCostOfMoving = 1e-3;  // milliseconds a GiB: of flows that are as fast, those that carry less
constexpr uint32_t kMostOps = 5'000;    // of larger graphs the program takes too long

class Rounding {
 public:
  Rounding(const TaskGraph& graph, const Fluid& fluid)
      : graph_(graph),
        fluid_(fluid),
        ops_(static_cast<uint32_t>(fluid.vitality.call_of_op.size())),
        points_(static_cast<uint32_t>(2 * fluid.fullest.size())) {}

  std::vector<AwayPeriod> periods() {
    for (const FluidFlow& flow : fluid_.flows) round(flow);
    return std::move(result_);
  }

 private:
  OpIndex fullest(uint32_t point) const { return fluid_.fullest[point % points_ / 2] + point / points_ * ops_; }

  // The tensor that leaves first comes back last. A tensor is away while at least half of its share of the flow is.
  void round(const FluidFlow& flow) {
    double below = 0;
    for (const FluidFlow::Member& member : flow.members) {
      const Version& version = fluid_.vitality.versions[member.version];
      const auto bytes = static_cast<double>(graph_.tensors[version.tensor].size);
      const double threshold = below + bytes / 2;
      below += bytes;
      const auto is_away = [&](double away) { return away >= threshold; };
      const auto first = std::find_if(flow.away.begin(), flow.away.end(), is_away);
      if (first == flow.away.end()) continue;
      const auto last = std::find_if(flow.away.rbegin(), flow.away.rend(), is_away).base() - 1;
      add(version.tensor, version.periods[member.period], flow.first + static_cast<uint32_t>(first - flow.away.begin()),
          flow.first + static_cast<uint32_t>(last - flow.away.begin()));
    }
  }

  void add(uint32_t tensor, const Period& period, uint32_t first, uint32_t last) {
    const uint32_t back = period.from / ops_ * ops_;
    AwayPeriod away;
    away.tensor = tensor;
    away.begin = period.from + 1 - back;
    away.end = period.to - back;
    away.offload_end = std::max(fullest(first) - back, away.begin) - 1;
    away.reload_begin = std::clamp(fullest(last) + 1 - back, away.begin, away.end);
    if (!period.tail) result_.push_back(away);
  }

  const TaskGraph& graph_;
  const Fluid& fluid_;
  uint32_t ops_;
  uint32_t points_;
  std::vector<AwayPeriod> result_;
};

class FluidPolicy : public Policy {
 public:
  std::string_view name() const override { return "fluid"; }
  Schedule schedule(const PolicyInput& input) const override {
    FurthestNextUse fallback;
    const WalkOptions all{input.capacity, input.carry_visitors};
    if (input.graph.devices > 1 || input.graph.op_count > kMostOps) return walk(input.graph, all, fallback);
    FluidOptions options;
    options.segments = kSegments;
    options.seconds = kSeconds;
    options.cost_of_moving = kCostOfMoving;
    Result<Fluid> fluid = solve_fluid(input.graph, input.capacity * input.graph.chunk_bytes, input.machine, options);
    if (!fluid.ok()) return walk(input.graph, all, fallback);
    const std::vector<AwayPeriod> periods = Rounding(input.graph, fluid.value()).periods();
    return schedule_periods(input, periods, fluid.value().vitality.call_of_op, fallback);
  }
};

}  // namespace

const Policy& fluid_policy() {
  static const FluidPolicy& policy = *new FluidPolicy;
  return policy;
}

}  // namespace reprise::analyzer
