#include "replay/plan/left_out.h"

#include <algorithm>

namespace reprise::replay {

bool LeftOutPart::take(uint32_t call) noexcept {
  const plan::Call& taken = index_.plan.calls[call];
  switch (taken.kind) {
    case plan::CallKind::allocate:
      inside_[taken.tensor] = true;
      ++alive_;
      return possible_;
    case plan::CallKind::free:
      if (!inside_[taken.tensor]) return false;
      inside_[taken.tensor] = false;
      --alive_;
      return possible_;
    case plan::CallKind::op:
      compute_ns_ += taken.duration_ns;
      return possible_ && is_small() && !brings_in_from_before(taken);
    case plan::CallKind::free_handover:
    case plan::CallKind::allocate_handover:
    case plan::CallKind::late_free:
      break;
  }
  return false;
}

// The op would be the first to write what it brings in, and for what is from before, bytes were given up for that.
bool LeftOutPart::brings_in_from_before(const plan::Call& call) const noexcept {
  const std::vector<plan::Acquire>& acquires = index_.plan.vertices[call.vertex].acquires;
  return std::any_of(acquires.begin(), acquires.end(),
                     [this](const plan::Acquire& acquire) { return !inside_[acquire.tensor]; });
}

}  // namespace reprise::replay
