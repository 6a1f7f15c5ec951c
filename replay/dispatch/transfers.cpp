// The plan executor's transfers: offloads, reloads, and which chunks a tensor takes when it comes in.
#include <algorithm>

#include "preload/base/log.h"
#include "preload/driver/driver.h"
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kTransferDepth = 4;  // copies with the driver per direction
constexpr uint64_t kTransferDry = 1;    // so few that issuing a copy which waits delays no other copy
// Copies with the driver go in their order, however urgent one is that becomes ready behind them. Those that wait there
// for the first need to last only until the dispatcher looks again.
constexpr uint64_t kTransferAhead = 2'000'000;  // ns

}  // namespace

LaneUses PlanExecutor::transfers_before(Instance instance) const noexcept {
  LaneUses uses;
  for (const Edge& edge : plan_index_->waits[instance.vertex]) {
    if (plan_index_->lanes[edge.vertex] == LaneKind::compute ||
        instance.iteration < progress_.first() + edge.distance) {
      continue;
    }
    const LaneUse use = progress_.use({instance.iteration - edge.distance, edge.vertex});
    uses.add(use.lane, use.position);
  }
  return uses;
}

bool PlanExecutor::transfers_complete(Instance instance) const noexcept {
  return memory_.lanes.known_complete(transfers_before(instance));
}

CUresult PlanExecutor::wait_for_predecessors(Instance instance, LaneIndex lane) noexcept {
  for (const Edge& edge : plan_index_->waits[instance.vertex]) {
    if (instance.iteration < progress_.first() + edge.distance) continue;
    const LaneUse use = progress_.use({instance.iteration - edge.distance, edge.vertex});
    const CUresult result = memory_.lanes.wait_on(lane, use);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// May the tensors that the vertex brings in take their places? A range that is mapped to other chunks has to be mapped
// again by the host, so all work that went through the old mapping must be complete.
bool PlanExecutor::can_place(uint32_t vertex) noexcept {
  if (memory_.strict()) {
    const std::vector<plan::Acquire>& acquires = plan_index_->plan.vertices[vertex].acquires;
    return std::all_of(acquires.begin(), acquires.end(), [this](const plan::Acquire& a) { return can_occupy(a); });
  }
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
bool PlanExecutor::place(uint32_t vertex, LaneIndex lane) noexcept {
  const bool is_reload = plan_index_->plan.vertices[vertex].kind == plan::VertexKind::reload;
  for (const plan::Acquire& acquire : plan_index_->plan.vertices[vertex].acquires) {
    ResidentTensor* const tensor = activation_.tensor(acquire.tensor);
    if (tensor == nullptr || tensor->chunk_count == 0) continue;
    const std::vector<ChunkIndex>& chunks = activation_.chunks_of(acquire.placement);
    if (memory_.strict()) {
      if (!occupy(*tensor, chunks, lane)) return false;
      continue;
    }
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

bool PlanExecutor::remap(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept {
  const Mapping* const mapping = memory_.mappings.find(tensor.base);
  if (mapping != nullptr && mapping->chunks == chunks) return true;
  mark_ends();
  // The tensor leaves its old chunks even if the driver refuses the new mapping.
  for (ChunkIndex chunk : mapping != nullptr ? mapping->chunks : std::vector<ChunkIndex>{}) {
    if (memory_.chunks[chunk].occupant == &tensor) memory_.chunks[chunk].occupant = nullptr;
  }
  tensor.left();
  CUresult result = memory_.mappings.unmap(tensor.base);
  if (result == CUDA_SUCCESS) result = map_and_look(tensor.base, chunks);
  if (result != CUDA_SUCCESS) failure_ = "a range could not be mapped to its next chunks";
  return result == CUDA_SUCCESS;
}

bool PlanExecutor::on_its_way(Instance instance) const noexcept {
  const auto is_it = [instance](const auto& under_way) {
    return under_way.instance.vertex == instance.vertex && under_way.instance.iteration == instance.iteration;
  };
  if (std::any_of(departures_.begin(), departures_.end(), is_it)) return true;
  const auto arrival = std::find_if(arrivals_.begin(), arrivals_.end(), is_it);
  return !memory_.lanes.known_complete(arrival != arrivals_.end() ? arrival->copied : progress_.use(instance));
}

// Do the copies of this direction that the driver has, behind the one that it performs, take long enough by the plan?
bool PlanExecutor::far_enough_ahead(LaneIndex lane) noexcept {
  std::vector<Instance>& sent = sent_[lane];
  std::erase_if(sent, [this](Instance instance) { return !on_its_way(instance); });
  uint64_t waiting_ns = 0;
  for (size_t i = 1; i < sent.size(); ++i) {
    const plan::Vertex& vertex = plan_index_->plan.vertices[sent[i].vertex];
    waiting_ns += vertex.predicted_end_ns - vertex.predicted_start_ns;
  }
  return waiting_ns >= kTransferAhead;
}

bool PlanExecutor::issue_transfers(LaneKind kind) noexcept {
  const LaneIndex index = kind == LaneKind::to_device ? Lanes::kToDevice : Lanes::kToHost;
  bool progress = false;
  bool full = false;
  while (failure_ == nullptr) {
    const Lane& lane = memory_.lanes[index];
    const uint64_t outstanding = lane.issued - lane.completed;
    full = outstanding >= kTransferDepth || far_enough_ahead(index);
    if (full) break;
    const auto issue_if = [&](Instance instance, bool good) {
      // While diverging, only the transfers that submitted calls may need.
      if (closing_ && !progress_.has_submitted(instance.iteration)) return false;
      good = good && (memory_.strict() ? can_transfer(instance.vertex) : can_place(instance.vertex));
      if (good) {
        issue_transfer(instance);
        sent_[index].push_back(instance);
      }
      return good;
    };
    const auto complete = [&](Instance instance) {
      return std::all_of(
          plan_index_->waits[instance.vertex].begin(), plan_index_->waits[instance.vertex].end(),
          [&](const Edge& edge) {
            return instance.iteration < progress_.first() + edge.distance ||
                   memory_.lanes.known_complete(progress_.use({instance.iteration - edge.distance, edge.vertex}));
          });
    };
    bool found = progress_.find_ready(kind, [&](Instance instance) { return issue_if(instance, complete(instance)); });
    if (!found && outstanding <= kTransferDry) {
      found = progress_.find_ready(kind, [&](Instance instance) { return issue_if(instance, true); });
    }
    if (!found) break;
    progress = true;
  }
  if (kind == LaneKind::to_host) transfers_ready_ = false;
  transfers_ready_ = transfers_ready_ || progress_.find_ready(kind, [](Instance) { return true; });
  return progress;
}

void PlanExecutor::issue_transfer(Instance instance) noexcept {
  const plan::Vertex& vertex = plan_index_->plan.vertices[instance.vertex];
  const LaneIndex lane = vertex.kind == plan::VertexKind::reload ? Lanes::kToDevice : Lanes::kToHost;
  ResidentTensor* const tensor = activation_.tensor(vertex.tensor);
  if (tensor == nullptr) {
    failure_ = "a transfer of a tensor that the program has not allocated";
    return;
  }
  if (memory_.strict()) {
    vertex.kind == plan::VertexKind::reload ? begin_arrival(instance) : depart(instance);
    return;
  }
  if (!place(instance.vertex, lane)) return;
  const std::vector<ChunkIndex> none;  // the copy finds the bytes by the tensor's addresses
  if (vertex.kind == plan::VertexKind::offload && compare_instead(instance, *tensor, none)) return;
  const CUresult result = copy_in_time(instance, *tensor, none);
  if (result != CUDA_SUCCESS) return transfer_failed(instance, result);
  if (vertex.kind == plan::VertexKind::offload) return departed(instance, *tensor, none, last_to_host());
  tensor->settle_in();
  const LaneUse use{lane, memory_.lanes[lane].issued};
  tensor->uses.add(use.lane, use.position);
  progress_.issued(instance, use);
}

// The offload is with the driver until `use`, or needed no copy. Strict safety: the tensor has left its chunks; else it
// does when the plan gives them to another one.
void PlanExecutor::departed(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                            LaneUse use) noexcept {
  if (memory_.strict()) {
    tensor.left();
    tensor.uses.clear();
    for (const ChunkIndex chunk : chunks) {
      if (memory_.chunks[chunk].occupant == &tensor) memory_.chunks[chunk].occupant = nullptr;
      memory_.chunks[chunk].uses.add(use.lane, use.position);
    }
  } else {
    tensor.uses.add(use.lane, use.position);
  }
  progress_.issued(instance, use);
}

// The host may have the tensor's bytes already: then they are compared first, and copied later where they are others.
bool PlanExecutor::compare_instead(Instance instance, ResidentTensor& tensor,
                                   const std::vector<ChunkIndex>& chunks) noexcept {
  if (tensor.digest.cell == kNoDigest || wait_for_predecessors(instance, Lanes::kDigests) != CUDA_SUCCESS) return false;
  const DigestCheck comparison = begin_comparison(memory_, tensor, chunks, LaneUses{});
  if (comparison.cell == kNoDigest) return false;
  progress_.taken(instance);
  departures_.push_back({instance, comparison, chunks});
  return true;
}

bool PlanExecutor::advance_departures() noexcept {
  bool progress = false;
  for (size_t i = 0; i < departures_.size() && failure_ == nullptr;) {
    if (!memory_.lanes.known_complete(departures_[i].comparison.computed)) {
      ++i;
      continue;
    }
    DepartureUnderWay departure = std::move(departures_[i]);
    departures_.erase(departures_.begin() + static_cast<std::ptrdiff_t>(i));
    progress = true;
    const plan::Vertex& vertex = plan_index_->plan.vertices[departure.instance.vertex];
    ResidentTensor& tensor = *activation_.tensor(vertex.tensor);
    if (end_comparison(memory_, tensor, departure.comparison)) {
      // Its memory is free now, whatever others are copied on the lane that it would have taken.
      departed(departure.instance, tensor, departure.chunks, departure.comparison.computed);
      continue;
    }
    const CUresult result = copy_in_time(departure.instance, tensor, departure.chunks, &departure.comparison);
    if (result != CUDA_SUCCESS) return stay(departure.instance, tensor, departure.chunks, result), true;
    departed(departure.instance, tensor, departure.chunks, last_to_host());
  }
  return progress;
}

// The plan ends: what was being compared is copied, or stays where it is.
void PlanExecutor::settle_departures() noexcept {
  for (DepartureUnderWay& departure : departures_) {
    LaneUses computed;
    computed.add(departure.comparison.computed.lane, departure.comparison.computed.position);
    memory_.lanes.host_wait(computed);
    memory_.digests.give_back(&departure.comparison.cell);
    if (!memory_.strict()) continue;
    ResidentTensor& tensor = *activation_.tensor(plan_index_->plan.vertices[departure.instance.vertex].tensor);
    stay_or_leave(tensor, departure.chunks);
  }
  departures_.clear();
}

// The copy of a transfer vertex behind what it waits for, bracketed for the activity source.
CUresult PlanExecutor::copy_in_time(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                                    DigestCheck* comparison) noexcept {
  DigestCheck none;
  const plan::Vertex& vertex = plan_index_->plan.vertices[instance.vertex];
  const LaneIndex lane = vertex.kind == plan::VertexKind::reload ? Lanes::kToDevice : Lanes::kToHost;
  CUresult result = wait_for_predecessors(instance, lane);
  if (result == CUDA_SUCCESS) result = memory_.lanes.enter_own();
  if (result != CUDA_SUCCESS) return result;
  const uint64_t id = activity_id(instance);
  ActivitySource* const activity = id != 0 ? shared_.activity.load(std::memory_order_acquire) : nullptr;
  if (activity != nullptr) activity->push(id, memory_.lanes.stream(lane));
  result = copy_for(vertex, tensor, chunks, comparison != nullptr ? comparison : &none);
  if (activity != nullptr) activity->pop(id, memory_.lanes.stream(lane));
  return result;
}

void PlanExecutor::transfer_failed(Instance instance, CUresult result) noexcept {
  const plan::Vertex& vertex = plan_index_->plan.vertices[instance.vertex];
  log_line(LogLevel::info, "vertex %u of iteration %llu, a transfer of %llu bytes: error %d", instance.vertex,
           static_cast<unsigned long long>(instance.iteration),
           static_cast<unsigned long long>(plan_index_->plan.tensors[vertex.tensor].size), static_cast<int>(result));
  failure_ = vertex.kind == plan::VertexKind::reload ? "a reload failed" : "an offload failed";
}

// Bytes that the program never wrote need no copy, nor does an offload of what the host has already; the vertex still
// takes its place on the lane.
CUresult PlanExecutor::copy_for(const plan::Vertex& vertex, ResidentTensor& tensor,
                                const std::vector<ChunkIndex>& chunks, DigestCheck* comparison) noexcept {
  if (vertex.kind == plan::VertexKind::offload) {
    if (tensor.needs_copy()) {
      const bool again = plan_index_->leaves_again[vertex.tensor];
      return ensure_slot(memory_, tensor) ? copy_out_compared(memory_, tensor, chunks, LaneUses{}, comparison, again)
                                          : CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory_.lanes.advance(Lanes::kToHost);
    return memory_.lanes.mark(Lanes::kToHost);
  }
  if (tensor.host_valid()) {
    LaneUse done;
    return copy_in(memory_, tensor, chunks, LaneUses{}, &done);
  }
  if (tensor.is_written())
    return CUDA_ERROR_INVALID_VALUE;  // no copy of its bytes exists: a plan that was not verified
  memory_.lanes.advance(Lanes::kToDevice);
  return memory_.lanes.mark(Lanes::kToDevice);
}

}  // namespace reprise::replay
