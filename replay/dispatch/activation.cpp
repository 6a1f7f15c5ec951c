#include "replay/dispatch/activation.h"

#include <algorithm>
#include <cstdio>

#include "preload/base/causes.h"
#include "preload/driver/driver.h"

namespace reprise::replay {
namespace {

const char* error_name(CUresult result) noexcept {
  const char* name = nullptr;
  return driver().cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : "unknown error";
}

}  // namespace

bool Refusal::by_driver(const char* what, CUresult result) noexcept {
  why = words<Cause::with_error>(what, error_name(result));
  short_of_memory = result == CUDA_ERROR_OUT_OF_MEMORY;
  return false;
}

bool Refusal::device_failed() noexcept {
  why = phrase<Cause::device_broke>();
  return false;
}

// Waits for the device: after it, no recorded use is outstanding.
bool Activation::settle() noexcept {
  if (memory_.lanes.synchronize() != CUDA_SUCCESS) return false;
  const auto forget_uses = [](ResidentTensor& tensor) {
    tensor.uses.clear();
    tensor.ready.clear();
  };
  memory_.tensors.for_each(forget_uses);
  memory_.blocks.for_each(forget_uses);
  memory_.plan_region.uses.clear();
  for (ChunkIndex chunk = 0; chunk < memory_.chunks.size(); ++chunk) memory_.chunks[chunk].uses.clear();
  return true;
}

bool Activation::enter(const PlanIndex* plan_index, const Command& cast, Refusal* why) noexcept {
  if (!settle()) return why->device_failed();
  if (plan_index != plan_index_) change_to(plan_index);
  if (plan_index->as_trusted) memory_.safety.enter_audited();
  const bool entered = bind_persistent(cast, why) && hold_blocks(why) && make_chunks(why) && vacate(why) &&
                       make_slots(why) && map_homes(why) && load(why);
  if (!entered) exit();
  return entered;
}

// The device is idle: nothing reads the host slots of the plan before.
void Activation::change_to(const PlanIndex* plan_index) noexcept {
  plan_index_ = plan_index;
  chunks_.clear();
  for (HostSlot& slot : slots_) {
    if (!slot.empty()) memory_.host.release(&slot);
  }
  slots_.clear();
  slots_.resize(plan_index->plan.tensors.size());
  slot_reads_.assign(slots_.size(), LaneUse{});
}

bool Activation::bind_persistent(const Command& cast, Refusal* why) noexcept {
  const plan::Plan& plan = plan_index_->plan;
  tensors_.assign(plan.tensors.size(), nullptr);
  freed_after_.assign(plan.tensors.size(), LaneUses{});
  const auto* const bases = static_cast<const CUdeviceptr*>(cast.payload);
  size_t alive = 0;
  memory_.tensors.for_each([&](const ResidentTensor&) { ++alive; });
  bool same = alive == plan_index_->persistent_count && cast.payload_bytes == alive * sizeof *bases;
  for (uint32_t t = 0; same && t < plan_index_->persistent_count; ++t) {
    ResidentTensor* const live = memory_.tensors.find(bases[t]);
    const bool moves = plan_index_->moves_in_handover(t);  // then it may be of any size
    same = live != nullptr && (moves || live->size == plan.tensors[t].size) &&
           live->chunk_count == plan.tensors[t].chunk_count && !plan_index_->ranges.contains(live->base) &&
           !memory_.mover_of(*live).is_lost();
    if (!same) break;
    tensors_[t] = live;
    live->aliased = plan_index_->aliased[t];
  }
  if (!same) why->why = phrase<Cause::plan_other_allocations>();
  return same;
}

// Small tensors do not move while a plan is in force: the blocks of those that live on, and the plan's own region for
// the others, are there from its beginning to its end. What the region of a plan before had more goes: no tensor of
// the region is alive where a plan begins (PlanFollower).
bool Activation::hold_blocks(Refusal* why) noexcept {
  const uint64_t region = plan_index_->slab_bytes / shared_.chunk_bytes;
  for (uint64_t i = region; i < memory_.plan_region.blocks; ++i) {
    pager_.forget_block(plan_index_->zone.base + i * shared_.chunk_bytes);
  }
  for (uint64_t i = 0; i < region; ++i) memory_.blocks.at(plan_index_->zone.base + i * shared_.chunk_bytes);
  memory_.plan_region.blocks = region;
  const CUresult result = pager_.bring_blocks_in();
  if (result != CUDA_SUCCESS) return why->by_driver(phrase<Cause::no_room_for_small>(), result);
  memory_.blocks.for_each([&](const SlabBlock& block) {
    for (const ChunkIndex chunk : memory_.mappings.find(block.base)->chunks) memory_.chunks[chunk].reserved = true;
  });
  return settle() || why->device_failed();
}

// They move again, and what the plan's ops have done to them counts as writing.
void Activation::let_go_of_blocks() noexcept {
  memory_.blocks.for_each([&](SlabBlock& block) {
    block.freed.clear();
    if (!block.is_resident()) return;
    block.wrote();
    for (const ChunkIndex chunk : memory_.mappings.find(block.base)->chunks) memory_.chunks[chunk].reserved = false;
  });
}

// A physical chunk for each of the plan's. The plan's chunk numbers are only names: a chunk that holds a persistent
// tensor's bytes gets the name with which these bytes can stay in place.
bool Activation::make_chunks(Refusal* why) noexcept {
  const plan::Plan& plan = plan_index_->plan;
  ChunkPool& pool = memory_.chunks;
  if (chunks_.empty()) {
    chunks_.assign(plan.chunk_count, kNoChunk);
    assign_current_chunks();
  }
  // Since the last activation the pager may have put small allocations into a chunk, or destroyed one.
  std::vector<bool> used(pool.size(), false);
  for (ChunkIndex& chunk : chunks_) {
    if (chunk != kNoChunk && (pool[chunk].reserved || pool[chunk].handle == 0)) chunk = kNoChunk;
    if (chunk != kNoChunk) used[chunk] = true;
  }
  ChunkIndex next = 0;
  for (ChunkIndex& chunk : chunks_) {
    if (chunk != kNoChunk) continue;
    while (next < used.size() && (used[next] || pool[next].reserved || pool[next].handle == 0)) ++next;
    if (next < used.size()) {
      chunk = next++;
      continue;
    }
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    chunk = pool.create(&result);
    if (chunk == kNoChunk) {
      const std::string what = words<Cause::small_hold_chunks>(plan.chunk_count, memory_.blocks.size(), pool.limit());
      return why->by_driver(what.c_str(), result);
    }
    pool.give_back(chunk);
  }
  placements_.clear();
  for (const plan::Placement& placement : plan.placements) {
    placements_.emplace_back();
    for (const uint32_t chunk : placement.chunks) placements_.back().push_back(chunks_[chunk]);
  }
  return true;
}

void Activation::assign_current_chunks() noexcept {
  const plan::Plan& plan = plan_index_->plan;
  std::vector<bool> used(memory_.chunks.size(), false);
  // First the tensors whose bytes can stay where they are, then those whose mapping can be kept.
  for (const bool resident : {true, false}) {
    for (uint32_t t = 0; t < plan_index_->persistent_count; ++t) {
      const plan::Tensor& tensor = plan.tensors[t];
      if (tensor.home == plan::kNone || tensor.resident_at_start != resident) continue;
      const Mapping* const mapping = memory_.mappings.find(tensors_[t]->base);
      if (mapping == nullptr || (resident && !tensors_[t]->is_resident())) continue;
      const std::vector<uint32_t>& home = plan.placements[tensor.home].chunks;
      for (size_t i = 0; i < home.size() && i < mapping->chunks.size(); ++i) {
        const ChunkIndex chunk = mapping->chunks[i];
        // An old mapping of an evicted tensor may name chunks that slabs have taken since.
        if (chunks_[home[i]] != kNoChunk || used[chunk] || memory_.chunks[chunk].reserved) continue;
        chunks_[home[i]] = chunk;
        used[chunk] = true;
      }
    }
  }
}

// nullptr: the tensor has no home.
const std::vector<ChunkIndex>* Activation::home(uint32_t index) const noexcept {
  const uint32_t placement = plan_index_->plan.tensors[index].home;
  return placement == plan::kNone ? nullptr : &placements_[placement];
}

bool Activation::in_place(uint32_t index) noexcept {
  const Mapping* const mapping = memory_.mappings.find(tensors_[index]->base);
  return home(index) != nullptr && mapping != nullptr && mapping->chunks == *home(index);
}

// Persistent tensors that are not where the plan starts are offloaded; those that stay get the host copy that the plan
// counts on, where it says so.
bool Activation::vacate(Refusal* why) noexcept {
  for (uint32_t t = 0; t < plan_index_->persistent_count; ++t) {
    const plan::Tensor& wanted = plan_index_->plan.tensors[t];
    ResidentTensor& tensor = *tensors_[t];
    if (wanted.chunk_count == 0 || !tensor.is_resident()) continue;
    CUresult result = CUDA_SUCCESS;
    if (!wanted.resident_at_start || !in_place(t)) {
      result = pager_.evict(tensor);
    } else if (wanted.clean_at_start && tensor.needs_copy()) {
      result = memory_.safety->make_clean(tensor, *home(t));
    }
    if (result != CUDA_SUCCESS) return why->by_driver(phrase<Cause::not_vacated>(), result);
  }
  return settle() || why->device_failed();
}

bool Activation::ensure_kept_slot(size_t index) noexcept {
  if (!slots_[index].empty()) return true;
  slot_reads_[index] = {Lanes::kToDevice, memory_.slot_reads};
  return memory_.host.allocate(plan_index_->plan.tensors[index].size, &slots_[index]);
}

bool Activation::make_slots(Refusal* why) noexcept {
  for (size_t t = 0; t < slots_.size(); ++t) {
    if (!plan_index_->offloaded[t]) continue;
    const bool have = t < plan_index_->persistent_count ? ensure_slot(memory_, *tensors_[t]) : ensure_kept_slot(t);
    if (have) continue;
    why->why = words<Cause::host_tier_small>(memory_.host.cap());
    why->short_of_memory = true;
    return false;
  }
  return true;
}

CUdeviceptr Activation::base_of(uint32_t index) const noexcept {
  return index < plan_index_->persistent_count ? tensors_[index]->base : plan_index_->addresses[index];
}

// May a mapping to the tensor's home be there while nothing runs? With strict safety that of a tensor which is away may
// not: it comes with the tensor's bytes.
bool Activation::may_stay_mapped(uint32_t index) const noexcept {
  if (memory_.safety->aliases() || plan_index_->aliased[index]) return true;
  return index < plan_index_->persistent_count ? tensors_[index]->is_resident() : plan_index_->keeps_mapping[index];
}

bool Activation::map_homes(Refusal* why) noexcept {
  const uint64_t chunk_bytes = shared_.chunk_bytes;
  // A mapping that is right already is kept. All wrong ones are unmapped before any is mapped.
  for (const bool map : {false, true}) {
    for (uint32_t t = 0; t < tensors_.size(); ++t) {
      const std::vector<ChunkIndex>* const chunks = home(t);
      if (chunks == nullptr) continue;
      const CUdeviceptr base = base_of(t);
      const bool stays = may_stay_mapped(t);
      const Mapping* const mapping = memory_.mappings.find(base);
      if (mapping != nullptr && mapping->chunks == *chunks && stays) continue;
      CUresult result = memory_.mappings.make_room(base, chunks->size() * chunk_bytes);
      if (result == CUDA_SUCCESS) result = memory_.mappings.unmap(base);
      if (result == CUDA_SUCCESS && map && stays) result = memory_.mappings.map(base, *chunks);
      if (result != CUDA_SUCCESS) return why->by_driver(phrase<Cause::home_not_mapped>(), result);
    }
  }
  return true;
}

bool Activation::load(Refusal* why) noexcept {
  std::vector<uint32_t> loaded;
  for (uint32_t t = 0; t < plan_index_->persistent_count; ++t) {
    const plan::Tensor& wanted = plan_index_->plan.tensors[t];
    ResidentTensor& tensor = *tensors_[t];
    if (!wanted.resident_at_start || tensor.is_resident() || home(t) == nullptr) continue;
    LaneUse done;
    if (tensor.host_valid()) {
      const CUresult result = copy_in(memory_, tensor, *home(t), LaneUses{}, &done);
      if (result != CUDA_SUCCESS) return why->by_driver(phrase<Cause::home_not_loaded>(), result);
    }
    loaded.push_back(t);
  }
  if (!settle()) return why->device_failed();
  for (const uint32_t t : loaded) {
    ResidentTensor& tensor = *tensors_[t];
    const CUresult result = memory_.safety->begin_at_home(tensor, *home(t));
    if (result != CUDA_SUCCESS) return why->by_driver(phrase<Cause::home_not_mapped>(), result);
    for (const ChunkIndex chunk : *home(t)) memory_.chunks[chunk].occupant = &tensor;
  }
  return true;
}

void Activation::exit() noexcept {
  settle();
  memory_.safety.leave_audited();
  let_go_of_blocks();
  memory_.for_each_mover([this](ResidentTensor& tensor) {
    if (!tensor.is_resident()) shared_.faults.unmapped(memory_.safety->clear_away(tensor.base));
  });
  ChunkPool& pool = memory_.chunks;
  // A chunk whose occupant has lost other chunks, and with them its bytes, has no occupant any more.
  for (ChunkIndex chunk = 0; chunk < pool.size(); ++chunk) {
    if (pool[chunk].occupant != nullptr && !pool[chunk].occupant->is_resident()) pool[chunk].occupant = nullptr;
  }
  pool.rebuild_free();
  memory_.for_each_mover([](ResidentTensor& tensor) {
    tensor.aliased = false;
    // A verified plan never loses bytes; if it happens, the program gets an error rather than wrong numbers.
    if (tensor.is_gone()) tensor.lose();
  });
}

void Activation::forget_freed() noexcept {
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t] == nullptr) continue;
    const bool freed = t < plan_index_->persistent_count ? tensors_[t]->in_handover() : tensors_[t]->is_freed_late();
    if (!freed) continue;
    pager_.forget(*tensors_[t]);
    tensors_[t] = nullptr;
  }
}

ResidentTensor* Activation::allocate(uint32_t index, uint64_t allocation, uint64_t size) noexcept {
  const uint32_t chunks = plan_index_->plan.tensors[index].chunk_count;
  ResidentTensor* const tensor = memory_.tensors.insert(plan_index_->addresses[index], size, chunks);
  tensor->allocation = allocation;
  tensor->aliased = plan_index_->aliased[index];
  tensor->host = std::move(slots_[index]);
  tensor->slot_read = slot_reads_[index];
  slots_[index].clear();
  tensors_[index] = tensor;
  return tensor;
}

bool Activation::clear_range(uint32_t index, CUresult* result) noexcept {
  *result = CUDA_SUCCESS;
  if (plan_index_->plan.tensors[index].chunk_count == 0) return true;
  const Mapping* const mapping = memory_.mappings.find(base_of(index));
  if (plan_index_->keeps_mapping[index] && mapping != nullptr) return true;  // gone: it was freed while it was away
  const LaneUses& uses = mapping != nullptr ? mapping->uses : freed_after_[index];
  return memory_.safety->clear_for_next(base_of(index), uses, result);
}

void Activation::release(uint32_t index, const LaneUses& last) noexcept {
  ResidentTensor* const tensor = tensors_[index];
  if (tensor == nullptr) return;
  if (Mapping* const mapping = memory_.mappings.find(tensor->base); mapping != nullptr) {
    tensor->uses.merge(last);
    for (const ChunkIndex chunk : mapping->chunks) {
      if (memory_.chunks[chunk].occupant != tensor) continue;
      memory_.chunks[chunk].occupant = nullptr;
      memory_.chunks[chunk].uses.merge(tensor->uses);
    }
    mapping->uses.merge(tensor->uses);
  } else {
    freed_after_[index] = last;
  }
  forget_slot_digest(memory_, *tensor);
  slots_[index] = std::move(tensor->host);
  slot_reads_[index] = tensor->slot_read;
  memory_.tensors.erase(tensor->base);
  tensors_[index] = nullptr;
}

}  // namespace reprise::replay
