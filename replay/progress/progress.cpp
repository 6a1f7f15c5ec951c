#include "replay/progress/progress.h"

namespace reprise::replay {

void Progress::begin(const PlanIndex* plan_index, uint64_t first) noexcept {
  plan_index_ = plan_index;
  first_ = first;
  next_open_ = first;
  unissued_submitted_ = 0;
  const size_t count = plan_index->plan.vertices.size();
  for (IterationSlot& slot : slots_) {
    slot = IterationSlot{};
    slot.uses.resize(count);
    for (auto& bits : slot.ready) bits.assign((count + 63) / 64, 0);
  }
  prepare(first);
}

void Progress::prepare(uint64_t iteration) noexcept {
  IterationSlot& slot = this->slot(iteration);
  const size_t count = plan_index_->plan.vertices.size();
  slot.iteration = iteration;
  slot.left = count;
  slot.submitted = 0;
  slot.missing = plan_index_->predecessors;
  slot.entries.assign(count, nullptr);
  if (iteration == first_) return;
  for (size_t v = 0; v < count; ++v) slot.missing[v] += plan_index_->cyclic[v];
}

bool Progress::open(uint64_t iteration) noexcept {
  if (iteration < next_open_) return true;
  // Opening an iteration prepares the next one, whose slot is that of the iteration two before.
  if (iteration >= first_ + 2 && !finished(iteration - 2)) return false;
  prepare(iteration + 1);
  next_open_ = iteration + 1;
  for (uint32_t v = 0; v < plan_index_->plan.vertices.size(); ++v) consider({iteration, v});
  return true;
}

// A vertex is ready when no predecessor is missing and, where it is a call, the program has made the call.
void Progress::consider(Instance instance) noexcept {
  const IterationSlot& slot = this->slot(instance.iteration);
  if (instance.iteration >= next_open_ || slot.missing[instance.vertex] != 0) return;
  if (plan_index_->ours[instance.vertex] || slot.entries[instance.vertex] != nullptr) set_ready(instance, true);
}

void Progress::set_ready(Instance instance, bool ready) noexcept {
  const uint32_t rank = plan_index_->rank[instance.vertex];
  uint64_t& word = slot(instance.iteration).ready[static_cast<size_t>(plan_index_->lanes[instance.vertex])][rank / 64];
  const uint64_t bit = uint64_t{1} << (rank % 64);
  word = ready ? word | bit : word & ~bit;
}

void Progress::submitted(Instance instance, LogEntry* entry) noexcept {
  IterationSlot& slot = this->slot(instance.iteration);
  slot.entries[instance.vertex] = entry;
  ++slot.submitted;
  ++unissued_submitted_;
  consider(instance);
}

void Progress::issued(Instance instance, LaneUse use) noexcept {
  IterationSlot& slot = this->slot(instance.iteration);
  set_ready(instance, false);
  slot.uses[instance.vertex] = use;
  --slot.left;
  if (slot.entries[instance.vertex] != nullptr) {
    slot.entries[instance.vertex] = nullptr;
    --unissued_submitted_;
  }
  for (const Edge& edge : plan_index_->successors[instance.vertex]) {
    const Instance successor{instance.iteration + edge.distance, edge.vertex};
    --this->slot(successor.iteration).missing[successor.vertex];
    consider(successor);
  }
}

}  // namespace reprise::replay
