#include "analyzer/bounds/fluid_grid.h"

#include <algorithm>

namespace reprise::analyzer {
namespace {

constexpr double kTouchedWeight = 0.75;  // of bytes against ops, when segments are cut

}  // namespace

FluidGrid::FluidGrid(const TaskGraph& graph, const Vitality& vitality, uint32_t segments)
    : graph_(graph), vitality_(vitality), ops_(static_cast<uint32_t>(vitality.call_of_op.size())) {
  cut(segments);
}

double FluidGrid::duration_ms(OpIndex op) const {
  const plan::Call& call = call_of(op);
  const bool copy = call.op == trace::OpKind::copy_host_to_device || call.op == trace::OpKind::copy_device_to_host;
  return copy ? 0
              : static_cast<double>(call.duration_ns) / kMs;  // the program's own copies do not keep kernels waiting
}

double FluidGrid::touched(OpIndex op) const {
  double bytes = 0;
  for (const uint32_t tensor : graph_.calls[vitality_.call_of_op[op]].operands) {
    bytes += static_cast<double>(graph_.tensors[tensor].size);
  }
  return bytes;
}

// Cuts into segments of about as many ops that touch about as many bytes: budgets are tight where much is touched.
void FluidGrid::cut(uint32_t segments) {
  double total = 0;
  for (OpIndex op{0}; op < ops_; ++op) total += touched(op);
  const uint32_t count = std::min(segments, ops_);
  double done = 0;
  uint32_t begun = 0;
  for (OpIndex op{0}; op < ops_; ++op) {
    const double of_ops = static_cast<double>(op) / ops_;
    const double share = total > 0 ? kTouchedWeight * done / total + (1 - kTouchedWeight) * of_ops : of_ops;
    if (count == ops_ || begun == 0 || share * count >= static_cast<double>(begun)) {
      ++begun;
      fullest_.push_back(op);
    }
    OpIndex& fullest = fullest_.back();
    if (vitality_.alive[op] > vitality_.alive[fullest]) fullest = op;
    done += touched(op);
  }
  compute_ms_.assign(2 * fullest_.size(), 0);
  for (OpIndex op{0}; op < ops_; ++op) compute_ms_[interval_of(op) % points()] += duration_ms(op);
}

uint32_t FluidGrid::interval_of(OpIndex op) const {
  const auto next = std::lower_bound(fullest_.begin(), fullest_.end(), op % ops_);
  const auto index = static_cast<uint32_t>(next - fullest_.begin());
  const bool itself = next != fullest_.end() && *next == op % ops_;
  return op / ops_ * points() + 2 * index + (itself ? 1 : 0);
}

std::optional<PeriodSpan> FluidGrid::span_of(const Period& period, uint32_t index) const {
  const uint32_t first = interval_behind(period.from);
  const uint32_t behind = interval_before(period.to);  // its point is no longer covered
  if (first >= behind) return std::nullopt;
  return PeriodSpan{index, first, behind - 1, period.tail ? kNone : behind};
}

}  // namespace reprise::analyzer
