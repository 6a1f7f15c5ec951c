#include "replay/dispatch/transfers.h"

#include <algorithm>

#include "analyzer/plan/vertex_kinds.h"
#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kTransferDepth = 4;  // copies with the driver per direction
constexpr uint64_t kTransferDry = 1;    // so few that issuing a copy which waits delays no other copy
// Copies with the driver go in their order, however urgent one is that becomes ready behind them. Those that wait there
// for the first need to last only until the dispatcher looks again.
constexpr uint64_t kTransferAhead = 2'000'000;  // ns

}  // namespace

void Transfers::begin() noexcept {
  departures_.clear();
  for (std::vector<Instance>& sent : sent_) sent.clear();
}

LaneUses Transfers::awaited_elsewhere(Instance instance, LaneIndex lane) const noexcept {
  LaneUses uses;
  const auto add = [&](LaneUse use) {
    if (memory_.lanes.awaits(lane, use)) uses.add(use.lane, use.position);
  };
  for (const Edge& edge : plan_.index->waits[instance.vertex]) {
    if (instance.iteration < progress_.first() + edge.distance) continue;
    add(progress_.use({instance.iteration - edge.distance, edge.vertex}));
  }
  const std::vector<uint64_t>& fence = plan_.safety->fence();
  for (size_t other = 0; other < fence.size(); ++other) add({static_cast<LaneIndex>(other), fence[other]});
  return uses;
}

LaneUses Transfers::transfers_before(Instance instance) const noexcept {
  LaneUses uses;
  for (const Edge& edge : plan_.index->waits[instance.vertex]) {
    if (plan_.index->lanes[edge.vertex] == LaneKind::compute ||
        instance.iteration < progress_.first() + edge.distance) {
      continue;
    }
    const LaneUse use = progress_.use({instance.iteration - edge.distance, edge.vertex});
    uses.add(use.lane, use.position);
  }
  return uses;
}

bool Transfers::transfers_complete(Instance instance) const noexcept {
  return memory_.lanes.known_complete(transfers_before(instance));
}

CUresult Transfers::wait_for_predecessors(Instance instance, LaneIndex lane) noexcept {
  for (const Edge& edge : plan_.index->waits[instance.vertex]) {
    if (instance.iteration < progress_.first() + edge.distance) continue;
    const LaneUse use = progress_.use({instance.iteration - edge.distance, edge.vertex});
    const CUresult result = memory_.lanes.wait_on(lane, use);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

bool Transfers::on_its_way(Instance instance) const noexcept {
  const auto is_it = [instance](const auto& under_way) {
    return under_way.instance.vertex == instance.vertex && under_way.instance.iteration == instance.iteration;
  };
  return std::any_of(departures_.begin(), departures_.end(), is_it) ||
         !memory_.lanes.known_complete(plan_.safety->copied(instance));
}

// Do the copies of this direction that the driver has, behind the one that it performs, take long enough by the plan?
bool Transfers::far_enough_ahead(LaneIndex lane) noexcept {
  std::vector<Instance>& sent = sent_[lane];
  std::erase_if(sent, [this](Instance instance) { return !on_its_way(instance); });
  uint64_t waiting_ns = 0;
  for (size_t i = 1; i < sent.size(); ++i) {
    const plan::Vertex& vertex = plan_.index->plan.vertices[sent[i].vertex];
    waiting_ns += vertex.predicted_end_ns - vertex.predicted_start_ns;
  }
  return waiting_ns >= kTransferAhead;
}

bool Transfers::issue(LaneKind kind) noexcept {
  const LaneIndex index = kind == LaneKind::to_device ? Lanes::kToDevice : Lanes::kToHost;
  bool progress = false;
  bool full = false;
  while (plan_.failure == nullptr) {
    const Lane& lane = memory_.lanes[index];
    const uint64_t outstanding = lane.issued - lane.completed;
    full = outstanding >= kTransferDepth || far_enough_ahead(index);
    if (full) break;
    const auto issue_if = [&](Instance instance, bool good) {
      // While diverging, only the transfers that submitted calls may need.
      if (plan_.closing && !progress_.has_submitted(instance.iteration)) return false;
      good = good && plan_.safety->can_transfer(instance.vertex);
      if (good) {
        issue_one(instance);
        sent_[index].push_back(instance);
      }
      return good;
    };
    const auto complete = [&](Instance instance) {
      return std::all_of(
          plan_.index->waits[instance.vertex].begin(), plan_.index->waits[instance.vertex].end(),
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
  if (kind == LaneKind::to_host) ready_ = false;
  ready_ = ready_ || progress_.find_ready(kind, [](Instance) { return true; });
  return progress;
}

void Transfers::issue_one(Instance instance) noexcept {
  ResidentTensor* const tensor = activation_.tensor(plan_.index->plan.vertices[instance.vertex].tensor);
  if (tensor != nullptr) return plan_.safety->issue_transfer(instance, *tensor);
  plan_.failure = phrase<Cause::transfer_of_none>();
}

void Transfers::departed(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                         LaneUse use) noexcept {
  plan_.safety->departed(tensor, chunks, use);
  progress_.issued(instance, use);
}

void Transfers::stay(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                     CUresult result) noexcept {
  plan_.safety->stays(tensor, chunks);
  failed(instance, result);
}

// The host may have the tensor's bytes already: then they are compared first, and copied later where they are others.
bool Transfers::compare_instead(Instance instance, ResidentTensor& tensor,
                                const std::vector<ChunkIndex>& chunks) noexcept {
  if (tensor.digest.cell == kNoDigest || wait_for_predecessors(instance, Lanes::kDigests) != CUDA_SUCCESS) return false;
  const DigestCheck comparison = begin_comparison(memory_, tensor, chunks, LaneUses{});
  if (comparison.cell == kNoDigest) return false;
  progress_.taken(instance);
  departures_.push_back({instance, comparison, chunks});
  return true;
}

bool Transfers::advance_departures() noexcept {
  bool progress = false;
  for (size_t i = 0; i < departures_.size() && plan_.failure == nullptr;) {
    if (!memory_.lanes.known_complete(departures_[i].comparison.computed)) {
      ++i;
      continue;
    }
    Departure departure = std::move(departures_[i]);
    departures_.erase(departures_.begin() + static_cast<std::ptrdiff_t>(i));
    progress = true;
    const plan::Vertex& vertex = plan_.index->plan.vertices[departure.instance.vertex];
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

void Transfers::settle_departures() noexcept {
  for (Departure& departure : departures_) {
    LaneUses computed;
    computed.add(departure.comparison.computed.lane, departure.comparison.computed.position);
    memory_.lanes.host_wait(computed);
    memory_.digests.give_back(&departure.comparison.cell);
    ResidentTensor* const tensor = activation_.tensor(plan_.index->plan.vertices[departure.instance.vertex].tensor);
    if (tensor != nullptr) plan_.safety->stays(*tensor, departure.chunks);
  }
  departures_.clear();
}

CUresult Transfers::copy_in_time(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                                 DigestCheck* comparison) noexcept {
  DigestCheck none;
  const plan::Vertex& vertex = plan_.index->plan.vertices[instance.vertex];
  const LaneIndex lane = plan::copies_in(vertex.kind) ? Lanes::kToDevice : Lanes::kToHost;
  CUresult result = wait_for_predecessors(instance, lane);
  if (result == CUDA_SUCCESS) result = memory_.lanes.enter_own();
  if (result != CUDA_SUCCESS) return result;
  const uint64_t id = activity_id(instance);
  ActivitySource* const activity = id != 0 ? shared_.common.activity.load(std::memory_order_acquire) : nullptr;
  if (activity != nullptr) activity->push(id, memory_.lanes.stream(lane));
  result = copy_for(vertex, tensor, chunks, comparison != nullptr ? comparison : &none);
  if (activity != nullptr) activity->pop(id, memory_.lanes.stream(lane));
  return result;
}

void Transfers::failed(Instance instance, CUresult result) noexcept {
  const plan::Vertex& vertex = plan_.index->plan.vertices[instance.vertex];
  say<Cause::transfer_failed>(instance.vertex, instance.iteration, plan_.index->plan.tensors[vertex.tensor].size,
                              result);
  plan_.failure = plan::copies_in(vertex.kind) ? phrase<Cause::reload_failed>() : phrase<Cause::offload_failed>();
}

// Bytes that the program never wrote need no copy, nor does an offload of what the host has already; the vertex still
// takes its place on the lane.
CUresult Transfers::copy_for(const plan::Vertex& vertex, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                             DigestCheck* comparison) noexcept {
  if (plan::copies_out(vertex.kind)) {
    if (tensor.needs_copy()) {
      const bool again = plan_.index->leaves_again[vertex.tensor];
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
