// Strict safety of a plan, and audited where not all ops are. What kernels touch unseen has to be right, too, or fault:
//
// - Ops are issued in the program's order, on its streams, so that what no edge of the plan says is kept as well.
// - A live tensor's range is mapped exactly while its bytes are there. A tensor that leaves is unmapped first and
//   copied then, one that comes is copied first and mapped then, both through the window. Mapping is done in pieces and
//   ahead of time: the ops that wait for it have not been issued.
// - With audited safety a range may stay mapped while its bytes are away (ResidentTensor::aliased): only ops that touch
//   nothing unseen are called between its uses then. It leaves when all others are complete that were called before,
//   and is back before any that comes is issued.
// - A plan drops a tensor and makes it again where only such ops are called between its launch and the repeat. The drop
//   waits until all others that were called before are complete. Ops behind the repeat's user wait for the repeat.
// - What a free gives back may have been touched by any work before it: ops behind a free wait for that work as they
//   would without us, and so do the chunks' next users.
//
//     offload   ... last use | wait | unmap | copy out ---> chunks free
//     reload                          chunks free | copy in, cuMemMap in pieces | cuMemSetAccess | first use ...
#include <algorithm>

#include "analyzer/plan/vertex_kinds.h"
#include "preload/base/causes.h"
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {
namespace {

bool are_complete(Lanes& lanes, const LaneUses& uses) noexcept {
  return uses.everything() ? lanes.synchronize() == CUDA_SUCCESS : lanes.complete(uses);
}

}  // namespace

void StrictPlan::begin(const PlanIndex* plan_index) noexcept {
  PlanSafety::begin(plan_index);
  in_order_.clear();
  arrivals_.clear();
  fence_.clear();
  unaudited_.clear();
}

// Does the oldest op or free wait for nothing but work that is with the driver?
bool StrictPlan::next_is_ready() noexcept {
  if (in_order_.empty() || !progress_.is_ready(in_order_.front())) return false;
  const Instance instance = in_order_.front();
  return plan_index_->lanes[instance.vertex] == LaneKind::none ||
         executor_.host_order_allows(progress_.entry(instance));
}

bool StrictPlan::next_may_go(uint64_t outstanding) noexcept {
  if (!next_is_ready()) return false;
  const Instance instance = in_order_.front();
  if (plan_index_->lanes[instance.vertex] == LaneKind::none) return true;
  return can_place(instance.vertex) &&
         (outstanding <= PlanExecutor::kComputeDry || executor_.transfers_.transfers_complete(instance));
}

bool StrictPlan::issue_ops() noexcept {
  bool progress = false;
  while (executor_.plan_.failure == nullptr) {
    const uint64_t outstanding = executor_.outstanding_ops();
    if (outstanding >= PlanExecutor::kComputeDepth) break;
    const bool may_go = next_may_go(outstanding);
    if (issue_own(outstanding, may_go)) {
      progress = true;
      continue;
    }
    if (!may_go) break;
    const Instance instance = in_order_.front();
    in_order_.pop_front();
    if (plan_index_->lanes[instance.vertex] == LaneKind::none) {
      pass_free(instance);
    } else {
      executor_.issue_op(instance);
    }
    progress = true;
  }
  return progress;
}

// Issues drops, repeats and ends of lives, which no call of the program makes. A vertex behind the program's next call
// in the plan's order waits while that call may go.
bool StrictPlan::issue_own(uint64_t outstanding, bool next_may_go) noexcept {
  const auto is_its_turn = [&](Instance own) {
    if (!plan_index_->ours[own.vertex]) return false;
    if (!next_may_go || own.iteration < in_order_.front().iteration) return true;
    return own.iteration == in_order_.front().iteration &&
           plan_index_->rank[own.vertex] < plan_index_->rank[in_order_.front().vertex];
  };
  const auto end_life = [&](Instance own) {
    if (plan_index_->ours[own.vertex]) pass_free(own);
    return plan_index_->ours[own.vertex];
  };
  const auto issue = [&](Instance own) {
    if (!is_its_turn(own) || !can_place(own.vertex)) return false;
    if (plan_index_->drops[own.vertex]) return are_complete(memory_.lanes, unaudited_) && issue_drop(own);
    const bool is_near = outstanding <= PlanExecutor::kComputeDry || executor_.transfers_.transfers_complete(own);
    return is_near && issue_repeat(own);
  };
  return progress_.find_ready(LaneKind::none, end_life) || progress_.find_ready(LaneKind::compute, issue);
}

bool StrictPlan::any_op_ready() noexcept {
  const auto is_own = [this](Instance instance) { return bool{plan_index_->ours[instance.vertex]}; };
  return next_is_ready() || progress_.find_ready(LaneKind::none, is_own) ||
         progress_.find_ready(LaneKind::compute, is_own);
}

// All work before the free is with the driver. A free on a stream has that stream's work before it. Any other free has
// all work before it; so has the end of a life that no free of the program ends.
void StrictPlan::pass_free(Instance instance) noexcept {
  LogEntry* const entry = progress_.entry(instance);
  LaneUses last;
  fence_.resize(memory_.lanes.size(), 0);
  const auto raise = [&](size_t index) {
    const auto lane = static_cast<LaneIndex>(index);
    if (lane >= fence_.size()) fence_.resize(lane + 1u, 0);
    fence_[lane] = memory_.lanes[lane].issued;
    const LaneUse use{lane, fence_[lane]};
    if (!memory_.lanes.known_complete(use)) last.add(use.lane, use.position);
  };
  if (entry != nullptr && entry->stream_ordered) {
    raise(memory_.lanes.lane_of(entry->command.stream, entry->command.context));
  } else {
    for (size_t lane = 0; lane < memory_.lanes.size(); ++lane) {
      if (!Lanes::is_ours(static_cast<LaneIndex>(lane))) raise(lane);
    }
  }
  activation_.release(plan_index_->plan.vertices[instance.vertex].tensor, last);
  progress_.issued(instance, LaneUse{});
  if (entry != nullptr) shared_.command_log.done(entry);
}

// Before an op: frees that the program made earlier, transfers out of chunks that are used from now on, and repeats.
CUresult StrictPlan::wait_for_fence(Instance instance, LaneIndex lane) noexcept {
  for (const Edge& edge : plan_index_->waits[instance.vertex]) {
    if (plan_index_->lanes[edge.vertex] == LaneKind::compute && !plan_index_->ours[edge.vertex]) continue;
    if (instance.iteration < progress_.first() + edge.distance) continue;
    const LaneUse use = progress_.use({instance.iteration - edge.distance, edge.vertex});
    if (use.lane >= fence_.size()) fence_.resize(use.lane + 1u, 0);
    fence_[use.lane] = std::max(fence_[use.lane], use.position);
  }
  for (size_t other = 0; other < fence_.size(); ++other) {
    if (fence_[other] == 0) continue;
    const CUresult result = memory_.lanes.wait_on(lane, LaneUse{static_cast<LaneIndex>(other), fence_[other]});
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// A range that has no mapping to these chunks yet gets it by the host, when nothing uses the chunks any more.
bool StrictPlan::can_occupy(const plan::Acquire& acquire) noexcept {
  const ResidentTensor* const tensor = activation_.tensor(acquire.tensor);
  if (tensor == nullptr || tensor->chunk_count == 0) return true;
  const std::vector<ChunkIndex>& chunks = activation_.chunks_of(acquire.placement);
  const Mapping* const mapping = memory_.mappings.find(tensor->base);
  if (mapping != nullptr && mapping->accessible && mapping->chunks == chunks) return true;
  LaneUses before = tensor->uses;
  if (mapping != nullptr) before.merge(mapping->uses);
  for (const ChunkIndex chunk : chunks) {
    before.merge(memory_.chunks[chunk].uses);
    const ResidentTensor* const occupant = memory_.chunks[chunk].occupant;
    if (occupant != nullptr && occupant != tensor) before.merge(occupant->uses);
  }
  return are_complete(memory_.lanes, before);
}

// The chunks are the tensor's from here on, for work on `lane` behind what has used them. A live tensor that is still
// there, which the plan needs no more, loses its range with them.
bool StrictPlan::take_over(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : chunks) {
    Chunk& taken = memory_.chunks[chunk];
    if (taken.occupant != nullptr && taken.occupant != &tensor) {
      ResidentTensor& before = *taken.occupant;
      before.left();
      if (Mapping* const mapping = memory_.mappings.find(before.base); mapping != nullptr) {
        mapping->uses.merge(before.uses);
      }
      if (result == CUDA_SUCCESS && !before.aliased) {
        executor_.mark_ends();
        result = memory_.mappings.unmap(before.base);
      }
    }
    if (result == CUDA_SUCCESS) result = memory_.lanes.wait_on(lane, taken.uses);
    if (result != CUDA_SUCCESS) break;
    taken.uses.clear();
    taken.occupant = &tensor;
  }
  if (result != CUDA_SUCCESS) executor_.plan_.failure = phrase<Cause::not_unmapped>();
  return result == CUDA_SUCCESS;
}

bool StrictPlan::can_place(uint32_t vertex) noexcept {
  const std::vector<plan::Acquire>& acquires = plan_index_->plan.vertices[vertex].acquires;
  return std::all_of(acquires.begin(), acquires.end(), [this](const plan::Acquire& a) { return can_occupy(a); });
}

bool StrictPlan::place(uint32_t vertex, LaneIndex lane) noexcept {
  for (const plan::Acquire& acquire : plan_index_->plan.vertices[vertex].acquires) {
    ResidentTensor* const tensor = activation_.tensor(acquire.tensor);
    if (tensor == nullptr || tensor->chunk_count == 0) continue;
    if (!occupy(*tensor, activation_.chunks_of(acquire.placement), lane)) return false;
    if (plan_index_->repeat_of[vertex] == plan::kNone) tensor->wrote();
  }
  return true;
}

// An op brings the tensor in: nothing is copied.
bool StrictPlan::occupy(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept {
  if (!take_over(tensor, chunks, lane)) return false;
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping == nullptr || !mapping->accessible || mapping->chunks != chunks) {
    executor_.mark_ends();
    tensor.left();
    CUresult result = memory_.mappings.unmap(tensor.base);
    if (result == CUDA_SUCCESS) result = executor_.stalls_.map(tensor.base, chunks);
    if (result != CUDA_SUCCESS) executor_.plan_.failure = phrase<Cause::not_mapped>();
    if (result != CUDA_SUCCESS) return false;
  }
  tensor.settle_in();
  return true;
}

// A tensor may leave when all work that is known to use it is complete; one may come at any time. One that stays mapped
// waits for that on the device, but for all that may use it unseen here.
bool StrictPlan::can_transfer(uint32_t vertex) noexcept {
  const plan::Vertex& transfer = plan_index_->plan.vertices[vertex];
  const ResidentTensor* const tensor = activation_.tensor(transfer.tensor);
  if (!plan::copies_out(transfer.kind) || tensor == nullptr) return true;
  LaneUses before = tensor->aliased ? unaudited_ : tensor->uses;
  if (const Mapping* const mapping = memory_.mappings.find(tensor->base); mapping != nullptr && !tensor->aliased) {
    before.merge(mapping->uses);
  }
  return are_complete(memory_.lanes, before);
}

void StrictPlan::issue_transfer(Instance instance, ResidentTensor& tensor) noexcept {
  const bool comes = plan::copies_in(plan_index_->plan.vertices[instance.vertex].kind);
  comes ? begin_arrival(instance, tensor) : depart(instance, tensor);
}

void StrictPlan::depart(Instance instance, ResidentTensor& tensor) noexcept {
  Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping == nullptr) return executor_.transfers_.failed(instance, CUDA_ERROR_INVALID_VALUE);
  const std::vector<ChunkIndex> chunks = mapping->chunks;
  mapping->uses.merge(tensor.uses);
  if (!tensor.aliased) executor_.mark_ends();
  CUresult result = tensor.aliased ? CUDA_SUCCESS : memory_.mappings.unmap(tensor.base);
  if (result != CUDA_SUCCESS) return executor_.transfers_.failed(instance, result);
  tensor.begin_departure();
  if (executor_.transfers_.compare_instead(instance, tensor, chunks)) return;
  result = executor_.transfers_.copy_in_time(instance, tensor, chunks);
  if (result != CUDA_SUCCESS) return executor_.transfers_.stay(instance, tensor, chunks, result);
  executor_.transfers_.departed(instance, tensor, chunks, executor_.transfers_.last_to_host());
}

void StrictPlan::departed(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneUse use) noexcept {
  tensor.left();
  tensor.uses.clear();
  for (const ChunkIndex chunk : chunks) {
    if (memory_.chunks[chunk].occupant == &tensor) memory_.chunks[chunk].occupant = nullptr;
    memory_.chunks[chunk].uses.add(use.lane, use.position);
  }
}

// If its range can be mapped again; else Activation::exit() finds its bytes lost.
void StrictPlan::stays(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  const bool mapped = tensor.aliased || memory_.mappings.map(tensor.base, chunks) == CUDA_SUCCESS;
  mapped ? tensor.stay() : tensor.left();
}

void StrictPlan::begin_arrival(Instance instance, ResidentTensor& tensor) noexcept {
  const plan::Acquire& acquire = plan_index_->plan.vertices[instance.vertex].acquires.front();
  const std::vector<ChunkIndex>& chunks = activation_.chunks_of(acquire.placement);
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  const bool stays = tensor.aliased && mapping != nullptr && mapping->accessible && mapping->chunks == chunks;
  if (!stays) executor_.mark_ends();
  CUresult result = stays ? CUDA_SUCCESS : memory_.mappings.unmap(tensor.base);
  if (result != CUDA_SUCCESS) return executor_.transfers_.failed(instance, result);
  tensor.left();
  if (!take_over(tensor, chunks, Lanes::kToDevice)) return;
  result = executor_.transfers_.copy_in_time(instance, tensor, chunks);
  if (result == CUDA_SUCCESS && !stays) result = memory_.mappings.begin(tensor.base, chunks);
  if (result != CUDA_SUCCESS) return executor_.transfers_.failed(instance, result);
  tensor.begin_arrival();
  progress_.taken(instance);
  arrivals_.push_back({instance, {Lanes::kToDevice, memory_.lanes[Lanes::kToDevice].issued}});
}

// A few chunks of the oldest arrival are mapped while its bytes are still on their way; when they are there, its range
// is made to lead to them, and the ops that wait for it may go.
bool StrictPlan::advance_arrivals() noexcept {
  bool progress = false;
  bool granted = false;
  uint64_t slice = Stalls::kMapSlice;
  for (size_t i = 0; i < arrivals_.size() && executor_.plan_.failure == nullptr;) {
    const ReloadUnderWay arrival = arrivals_[i];
    ResidentTensor& tensor = *activation_.tensor(plan_index_->plan.vertices[arrival.instance.vertex].tensor);
    Mapping& mapping = *memory_.mappings.find(tensor.base);
    const uint64_t missing = mapping.chunks.size() - mapping.mapped;
    const uint64_t now = std::min(missing, slice);
    CUresult result = now > 0 ? memory_.mappings.extend(tensor.base, now) : CUDA_SUCCESS;
    slice -= now;
    progress |= now > 0;
    if (result == CUDA_SUCCESS && (now < missing || !memory_.lanes.known_complete(arrival.copied))) {
      ++i;
      continue;
    }
    if (result == CUDA_SUCCESS && !mapping.accessible && !granted) {
      result = executor_.stalls_.grant_some(tensor.base);
      progress = granted = true;
    }
    if (result == CUDA_SUCCESS && !mapping.accessible) {
      ++i;
      continue;
    }
    arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
    progress = true;
    if (result != CUDA_SUCCESS) {
      tensor.turn_back();
      executor_.transfers_.failed(arrival.instance, result);
      break;
    }
    tensor.settle_in();
    tensor.wrote();
    tensor.uses.add(arrival.copied.lane, arrival.copied.position);
    progress_.issued(arrival.instance, arrival.copied);
  }
  return progress;
}

LaneUse StrictPlan::copied(Instance instance) const noexcept {
  for (const ReloadUnderWay& arrival : arrivals_) {
    if (arrival.instance.vertex == instance.vertex && arrival.instance.iteration == instance.iteration) {
      return arrival.copied;
    }
  }
  return progress_.use(instance);
}

void StrictPlan::issued(const plan::Call& call, LaneUse use) noexcept {
  if (plan::touches_only_operands(call)) return;
  if (memory_.lanes.known_complete(unaudited_)) unaudited_.clear();
  unaudited_.add(use.lane, use.position);
}

// The plan ends: what has not arrived stays on the host.
void StrictPlan::cancel_arrivals() noexcept {
  for (const ReloadUnderWay& arrival : arrivals_) {
    ResidentTensor* const tensor = activation_.tensor(plan_index_->plan.vertices[arrival.instance.vertex].tensor);
    LaneUses copied;
    copied.add(arrival.copied.lane, arrival.copied.position);
    shared_.faults.report(memory_.lanes.host_wait(copied));
    shared_.faults.unmapped(memory_.mappings.unmap(tensor->base));
    tensor->turn_back();
  }
  arrivals_.clear();
}

}  // namespace reprise::replay
