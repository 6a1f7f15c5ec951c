// Trusted safety of a plan, and audited where all ops are: ops go in the order of the plan's priorities, as its edges
// allow, and ranges stay mapped, so that a transfer costs no driver call but its copy.
#include <algorithm>

#include "analyzer/plan/vertex_kinds.h"
#include "preload/base/causes.h"
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {

bool TrustedPlan::issue_releases() noexcept {
  bool progress = false;
  while (progress_.find_ready(LaneKind::none, [&](Instance instance) {
    release(instance);
    return true;
  })) {
    progress = true;
  }
  return progress;
}

void TrustedPlan::release(Instance instance) noexcept {
  LogEntry* const entry = progress_.entry(instance);
  activation_.release(plan_index_->plan.vertices[instance.vertex].tensor);
  progress_.issued(instance, LaneUse{});
  if (entry != nullptr) shared_.command_log.done(entry);
}

bool TrustedPlan::issue_ops() noexcept {
  bool progress = false;
  while (executor_.plan_.failure == nullptr) {
    const uint64_t outstanding = executor_.outstanding_ops();
    if (outstanding >= PlanExecutor::kComputeDepth) break;
    const auto allowed = [&](Instance instance) { return executor_.host_order_allows(progress_.entry(instance)); };
    const auto issue_if = [&](Instance instance, bool good) {
      good = good && can_place(instance.vertex);
      if (good && plan_index_->drops[instance.vertex]) return issue_drop(instance);
      if (good && plan_index_->repeat_of[instance.vertex] != plan::kNone) return issue_repeat(instance);
      if (good) executor_.issue_op(instance);
      return good;
    };
    bool found = progress_.find_ready(LaneKind::compute, [&](Instance instance) {
      return issue_if(instance, executor_.transfers_.transfers_complete(instance) && allowed(instance));
    });
    if (!found && outstanding <= PlanExecutor::kComputeDry) {
      found = progress_.find_ready(LaneKind::compute,
                                   [&](Instance instance) { return issue_if(instance, allowed(instance)); });
    }
    if (!found) break;
    progress = true;
  }
  return progress;
}

bool TrustedPlan::any_op_ready() noexcept {
  const auto any = [](Instance) { return true; };
  const auto allowed = [&](Instance instance) { return executor_.host_order_allows(progress_.entry(instance)); };
  return progress_.find_ready(LaneKind::none, any) || progress_.find_ready(LaneKind::compute, allowed);
}

// A range that is mapped to other chunks has to be mapped again by the host, so all work that went through the old
// mapping must be complete.
bool TrustedPlan::can_place(uint32_t vertex) noexcept {
  if (!plan_index_->remaps) return true;
  for (const plan::Acquire& acquire : plan_index_->plan.vertices[vertex].acquires) {
    const ResidentTensor* const tensor = activation_.tensor(acquire.tensor);
    if (tensor == nullptr || tensor->chunk_count == 0) continue;
    const Mapping* const mapping = memory_.mappings.find(tensor->base);
    if (mapping != nullptr && mapping->chunks == activation_.chunks_of(acquire.placement)) continue;
    LaneUses before = tensor->uses;
    if (mapping != nullptr) before.merge(mapping->uses);
    // More lanes than LaneUses can tell apart: all work has to be complete.
    if (before.everything() && memory_.lanes.synchronize() != CUDA_SUCCESS) return false;
    if (!before.everything() && !memory_.lanes.complete(before)) return false;
  }
  return true;
}

// From here on the tensors that the vertex brings in occupy their chunks; but until the copy of a reload is with the
// driver, a failure must find the tensor on the host. False: a mapping failed.
bool TrustedPlan::place(uint32_t vertex, LaneIndex) noexcept {
  const bool is_reload = plan::copies_in(plan_index_->plan.vertices[vertex].kind);
  for (const plan::Acquire& acquire : plan_index_->plan.vertices[vertex].acquires) {
    ResidentTensor* const tensor = activation_.tensor(acquire.tensor);
    if (tensor == nullptr || tensor->chunk_count == 0) continue;
    const std::vector<ChunkIndex>& chunks = activation_.chunks_of(acquire.placement);
    if (plan_index_->remaps && !remap(*tensor, chunks)) return false;
    for (const ChunkIndex chunk : chunks) {
      ResidentTensor*& occupant = memory_.chunks[chunk].occupant;
      if (occupant != nullptr && occupant != tensor) occupant->left();
      occupant = tensor;
    }
    is_reload ? tensor->left() : tensor->settle_in();
  }
  return true;
}

bool TrustedPlan::remap(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping != nullptr && mapping->chunks == chunks) return true;
  executor_.mark_ends();
  // The tensor leaves its old chunks even if the driver refuses the new mapping.
  for (ChunkIndex chunk : mapping != nullptr ? mapping->chunks : std::vector<ChunkIndex>{}) {
    if (memory_.chunks[chunk].occupant == &tensor) memory_.chunks[chunk].occupant = nullptr;
  }
  tensor.left();
  CUresult result = memory_.mappings.unmap(tensor.base);
  if (result == CUDA_SUCCESS) result = executor_.stalls_.map(tensor.base, chunks);
  if (result != CUDA_SUCCESS) executor_.plan_.failure = phrase<Cause::not_mapped_next>();
  return result == CUDA_SUCCESS;
}

void TrustedPlan::issue_transfer(Instance instance, ResidentTensor& tensor) noexcept {
  const bool comes = plan::copies_in(plan_index_->plan.vertices[instance.vertex].kind);
  const LaneIndex lane = comes ? Lanes::kToDevice : Lanes::kToHost;
  if (!place(instance.vertex, lane)) return;
  const std::vector<ChunkIndex> none;  // the copy finds the bytes by the tensor's addresses
  if (!comes && executor_.transfers_.compare_instead(instance, tensor, none)) return;
  const CUresult result = executor_.transfers_.copy_in_time(instance, tensor, none);
  if (result != CUDA_SUCCESS) return executor_.transfers_.failed(instance, result);
  if (!comes) return executor_.transfers_.departed(instance, tensor, none, executor_.transfers_.last_to_host());
  tensor.settle_in();
  const LaneUse use{lane, memory_.lanes[lane].issued};
  tensor.uses.add(use.lane, use.position);
  progress_.issued(instance, use);
}

// It leaves its chunks when the plan gives them to another tensor.
void TrustedPlan::departed(ResidentTensor& tensor, const std::vector<ChunkIndex>&, LaneUse use) noexcept {
  tensor.uses.add(use.lane, use.position);
}

}  // namespace reprise::replay
