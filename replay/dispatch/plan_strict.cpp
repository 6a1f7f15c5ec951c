// The plan executor's strict safety, and audited where not all ops are. What kernels touch unseen has to be right, too,
// or fault:
//
// - Ops are issued in the program's order, on its streams, so that what no edge of the plan says is kept as well.
// - A live tensor's range is mapped exactly while its bytes are there. A tensor that leaves is unmapped first and
// copied
//   then, one that comes is copied first and mapped then, both through the window. Mapping is done in pieces and ahead
//   of time: the ops that wait for it have not been issued.
// - With audited safety a range may stay mapped while its bytes are away (Residency::is_aliased): only ops that touch
//   nothing unseen are called between its uses then. It leaves when all others are complete that were called before,
//   and is back before any that comes is issued.
// - What a free gives back may have been touched by any work before it: ops behind a free wait for that work as they
//   would without us, and so do the chunks' next users.
//
//     offload   ... last use | wait | unmap | copy out ---> chunks free
//     reload                          chunks free | copy in, cuMemMap in pieces | cuMemSetAccess | first use ...
#include <algorithm>

#include "preload/driver/driver.h"
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kMapSlice = 8;  // chunks that are mapped before ops are looked at again
// ... and access is granted to so many that it takes about this long: copies and ops that the driver has last
// meanwhile.
constexpr uint64_t kGrantSlice = 500'000;  // ns

}  // namespace

// Does the oldest op or free wait for nothing but work that is with the driver?
bool PlanExecutor::next_is_ready() noexcept {
  if (in_order_.empty() || !progress_.is_ready(in_order_.front())) return false;
  const Instance instance = in_order_.front();
  return plan_index_->lanes[instance.vertex] == LaneKind::none || host_order_allows(progress_.entry(instance));
}

bool PlanExecutor::next_may_go(uint64_t outstanding) noexcept {
  if (!next_is_ready()) return false;
  const Instance instance = in_order_.front();
  if (plan_index_->lanes[instance.vertex] == LaneKind::none) return true;
  return can_place(instance.vertex) && (outstanding <= kComputeDry || transfers_complete(instance));
}

bool PlanExecutor::issue_in_order() noexcept {
  bool progress = false;
  while (failure_ == nullptr) {
    const Lane& lane = memory_.lanes[compute_lane_];
    const uint64_t outstanding = compute_lane_ == Lanes::kToDevice ? 0 : lane.issued - lane.completed;
    if (outstanding >= kComputeDepth || !next_may_go(outstanding)) break;
    const Instance instance = in_order_.front();
    in_order_.pop_front();
    if (plan_index_->lanes[instance.vertex] == LaneKind::none) {
      pass_free(instance);
    } else {
      issue_op(instance);
    }
    progress = true;
  }
  return progress;
}

// All work before the free is with the driver. A free on a stream has that stream's work before it, any other one all.
void PlanExecutor::pass_free(Instance instance) noexcept {
  const LogEntry& entry = *progress_.entry(instance);
  LaneUses last;
  fence_.resize(memory_.lanes.size(), 0);
  const auto raise = [&](size_t index) {
    const auto lane = static_cast<LaneIndex>(index);
    if (lane >= fence_.size()) fence_.resize(lane + 1u, 0);
    fence_[lane] = memory_.lanes[lane].issued;
    const LaneUse use{lane, fence_[lane]};
    if (!memory_.lanes.known_complete(use)) last.add(use.lane, use.position);
  };
  if (entry.stream_ordered) {
    raise(memory_.lanes.lane_of(entry.command.stream, entry.command.context));
  } else {
    for (size_t lane = 0; lane < memory_.lanes.size(); ++lane) {
      if (!Lanes::is_ours(static_cast<LaneIndex>(lane))) raise(lane);
    }
  }
  activation_.release(plan_index_->plan.vertices[instance.vertex].tensor, last);
  LogEntry* const freed = progress_.entry(instance);
  progress_.issued(instance, LaneUse{});
  shared_.command_log.done(freed);
}

// Before an op: frees that the program made earlier, and transfers out of chunks that are used from now on.
CUresult PlanExecutor::wait_for_fence(Instance instance, LaneIndex lane) noexcept {
  if (!memory_.strict()) return CUDA_SUCCESS;
  for (const Edge& edge : plan_index_->waits[instance.vertex]) {
    if (plan_index_->lanes[edge.vertex] == LaneKind::compute) continue;
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
bool PlanExecutor::can_occupy(const plan::Acquire& acquire) noexcept {
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
  if (before.everything()) return memory_.lanes.synchronize() == CUDA_SUCCESS;
  return memory_.lanes.complete(before);
}

// The chunks are the tensor's from here on, for work on `lane` behind what has used them. A live tensor that is still
// there, which the plan needs no more, loses its range with them.
bool PlanExecutor::take_over(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (const ChunkIndex chunk : chunks) {
    Chunk& taken = memory_.chunks[chunk];
    if (taken.occupant != nullptr && taken.occupant != &tensor) {
      ResidentTensor& before = *taken.occupant;
      before.left();
      if (Mapping* const mapping = memory_.mappings.find(before.base); mapping != nullptr) {
        mapping->uses.merge(before.uses);
      }
      if (result == CUDA_SUCCESS && !before.is_aliased()) {
        mark_ends();
        result = memory_.mappings.unmap(before.base);
      }
    }
    if (result == CUDA_SUCCESS) result = memory_.lanes.wait_on(lane, taken.uses);
    if (result != CUDA_SUCCESS) break;
    taken.uses.clear();
    taken.occupant = &tensor;
  }
  if (result != CUDA_SUCCESS) failure_ = "a range could not be unmapped";
  return result == CUDA_SUCCESS;
}

// What Mappings::map() does, in pieces, so that it shows when the device comes to its end meanwhile.
CUresult PlanExecutor::map_and_look(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept {
  look_before_issue();
  CUresult result = memory_.mappings.begin(base, chunks);
  for (uint64_t mapped = 0; result == CUDA_SUCCESS && mapped < chunks.size(); mapped += kMapSlice) {
    result = memory_.mappings.extend(base, kMapSlice);
    look_before_issue();
  }
  while (result == CUDA_SUCCESS && !memory_.mappings.find(base)->accessible) {
    result = grant_some(base);
    look_before_issue();
  }
  return result;
}

// An op brings the tensor in: nothing is copied.
bool PlanExecutor::occupy(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept {
  if (!take_over(tensor, chunks, lane)) return false;
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping == nullptr || !mapping->accessible || mapping->chunks != chunks) {
    mark_ends();
    tensor.left();
    CUresult result = memory_.mappings.unmap(tensor.base);
    if (result == CUDA_SUCCESS) result = map_and_look(tensor.base, chunks);
    if (result != CUDA_SUCCESS) failure_ = "a range could not be mapped";
    if (result != CUDA_SUCCESS) return false;
  }
  tensor.settle_in();
  tensor.wrote();
  return true;
}

// A tensor may leave when all work that is known to use it is complete; one may come at any time. One that stays mapped
// waits for that on the device, but for all that may use it unseen here.
bool PlanExecutor::can_transfer(uint32_t vertex) noexcept {
  const plan::Vertex& transfer = plan_index_->plan.vertices[vertex];
  const ResidentTensor* const tensor = activation_.tensor(transfer.tensor);
  if (transfer.kind != plan::VertexKind::offload || tensor == nullptr) return true;
  LaneUses before = tensor->is_aliased() ? unaudited_ : tensor->uses;
  if (const Mapping* const mapping = memory_.mappings.find(tensor->base); mapping != nullptr && !tensor->is_aliased()) {
    before.merge(mapping->uses);
  }
  if (before.everything()) return memory_.lanes.synchronize() == CUDA_SUCCESS;
  return memory_.lanes.complete(before);
}

void PlanExecutor::depart(Instance instance) noexcept {
  ResidentTensor& tensor = *activation_.tensor(plan_index_->plan.vertices[instance.vertex].tensor);
  Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping == nullptr) return transfer_failed(instance, CUDA_ERROR_INVALID_VALUE);
  const std::vector<ChunkIndex> chunks = mapping->chunks;
  mapping->uses.merge(tensor.uses);
  if (!tensor.is_aliased()) mark_ends();
  CUresult result = tensor.is_aliased() ? CUDA_SUCCESS : memory_.mappings.unmap(tensor.base);
  if (result != CUDA_SUCCESS) return transfer_failed(instance, result);
  tensor.begin_departure();
  if (compare_instead(instance, tensor, chunks)) return;
  result = copy_in_time(instance, tensor, chunks);
  if (result != CUDA_SUCCESS) return stay(instance, tensor, chunks, result);
  departed(instance, tensor, chunks, last_to_host());
}

// It stays where it is, if its range can be mapped again; else Activation::exit() finds its bytes lost.
void PlanExecutor::stay_or_leave(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  const bool stays = tensor.is_aliased() || memory_.mappings.map(tensor.base, chunks) == CUDA_SUCCESS;
  stays ? tensor.stay() : tensor.left();
}

void PlanExecutor::stay(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                        CUresult result) noexcept {
  if (memory_.strict()) stay_or_leave(tensor, chunks);
  transfer_failed(instance, result);
}

void PlanExecutor::begin_arrival(Instance instance) noexcept {
  const plan::Vertex& vertex = plan_index_->plan.vertices[instance.vertex];
  ResidentTensor& tensor = *activation_.tensor(vertex.tensor);
  const uint32_t placement = vertex.acquires.front().placement;
  const std::vector<ChunkIndex>& chunks = activation_.chunks_of(placement);
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  const bool stays = tensor.is_aliased() && mapping != nullptr && mapping->accessible && mapping->chunks == chunks;
  if (!stays) mark_ends();
  CUresult result = stays ? CUDA_SUCCESS : memory_.mappings.unmap(tensor.base);
  if (result != CUDA_SUCCESS) return transfer_failed(instance, result);
  tensor.left();
  if (!take_over(tensor, chunks, Lanes::kToDevice)) return;
  result = copy_in_time(instance, tensor, chunks);
  if (result == CUDA_SUCCESS && !stays) result = memory_.mappings.begin(tensor.base, chunks);
  if (result != CUDA_SUCCESS) return transfer_failed(instance, result);
  tensor.begin_arrival();
  progress_.taken(instance);
  arrivals_.push_back({instance, placement, {Lanes::kToDevice, memory_.lanes[Lanes::kToDevice].issued}});
}

// The driver takes its time for each chunk, of which a large tensor has hundreds.
CUresult PlanExecutor::grant_some(CUdeviceptr base) noexcept {
  const Mapping& mapping = *memory_.mappings.find(base);
  const uint64_t before = mapping.granted;
  const uint64_t begun_ns = RunLogWriter::now_ns();
  const CUresult result = memory_.mappings.grant(base, std::max<uint64_t>(kGrantSlice / chunk_grant_ns_, 1));
  if (result != CUDA_SUCCESS) return result;
  const uint64_t count = std::max<uint64_t>(mapping.granted - before, 1);
  chunk_grant_ns_ = std::max<uint64_t>((RunLogWriter::now_ns() - begun_ns) / count, 1);
  return CUDA_SUCCESS;
}

// A few chunks of the oldest arrival are mapped while its bytes are still on their way; when they are there, its range
// is made to lead to them, and the ops that wait for it may go.
bool PlanExecutor::advance_arrivals() noexcept {
  bool progress = false;
  bool granted = false;
  uint64_t slice = kMapSlice;
  for (size_t i = 0; i < arrivals_.size() && failure_ == nullptr;) {
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
      result = grant_some(tensor.base);
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
      transfer_failed(arrival.instance, result);
      break;
    }
    tensor.settle_in();
    tensor.wrote();
    tensor.uses.add(arrival.copied.lane, arrival.copied.position);
    progress_.issued(arrival.instance, arrival.copied);
  }
  return progress;
}

// The plan ends: what has not arrived stays on the host.
void PlanExecutor::cancel_arrivals() noexcept {
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
