#include "replay/dispatch/repeats.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"

namespace reprise::replay {

using plan::kNone;

bool Repeats::begin(const PlanIndex* plan_index) noexcept {
  plan_index_ = plan_index;
  if (memory_.lanes.enter_own() == CUDA_SUCCESS) examiner_.rest();
  checks_.clear();
  launches_.resize(plan_index->repeats.size());
  proofs_ = &all_proofs_[plan_index];
  proofs_->resize(plan_index->repeats.size(), false);
  for (Dropped& dropped : dropped_) memory_.digests.give_back(&dropped.cell);
  dropped_.assign(plan_index->plan.tensors.size(), Dropped{});
  maker_.assign(plan_index->plan.tensors.size(), kNone);
  for (uint32_t r = 0; r < plan_index->repeats.size(); ++r) {
    for (const uint32_t tensor : plan_index->repeats[r].outputs) maker_[tensor] = r;
  }
  return plan_index->repeats.empty() || (memory_.lanes.enter_own() == CUDA_SUCCESS && memory_.digests.available());
}

void Repeats::retain(uint32_t repeat, const Command& command) noexcept {
  Launch& launch = launches_[repeat];
  launch.payload.resize((command.payload_bytes + sizeof(PayloadUnit) - 1) / sizeof(PayloadUnit));
  std::memcpy(launch.payload.data(), command.payload, command.payload_bytes);
  launch.command = command;
  launch.command.payload = launch.payload.data();
  launch.command.accesses = nullptr;
  launch.command.access_count = 0;
  launch.command.parameters = nullptr;
}

// The tensor is on the device, and its addresses lead to its bytes.
CUresult Repeats::digest(uint32_t tensor, DigestCell cell, CUstream stream) noexcept {
  const ResidentTensor* const live = activation_.tensor(tensor);
  const CUdeviceptr base = live != nullptr ? live->base : plan_index_->addresses[tensor];
  CUresult result = memory_.digests.begin(cell, stream);
  const uint64_t bytes = plan_index_->plan.tensors[tensor].size;
  if (result == CUDA_SUCCESS) result = memory_.digests.add(cell, base, bytes, 0, stream);
  return result == CUDA_SUCCESS ? memory_.digests.finish(cell, stream) : result;
}

bool Repeats::drop(uint32_t tensor, LaneIndex lane, CUresult* result, LaneUse* use) noexcept {
  Dropped& dropped = dropped_[tensor];
  memory_.digests.give_back(&dropped.cell);
  dropped.cell = take_cell(memory_);
  if (dropped.cell == kNoDigest) return false;
  ResidentTensor& live = *activation_.tensor(tensor);
  *result = digest(tensor, dropped.cell, memory_.lanes.stream(lane));
  *use = {lane, memory_.lanes.advance(lane)};
  memory_.lanes.mark(lane);
  dropped.copied = dropped.made_again = false;
  // Until the repeat was seen to make the same, the bytes are kept where there is room.
  if (*result == CUDA_SUCCESS && !proven(maker_[tensor]) && ensure_slot(memory_, live)) {
    LaneUses after;
    after.add(use->lane, use->position);
    *result = copy_out(memory_, live, memory_.mappings.find(live.base)->chunks, after);
    dropped.copied = *result == CUDA_SUCCESS;
    *use = {Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued};
    // What follows on the lane counts on its order alone.
    if (*result == CUDA_SUCCESS) *result = memory_.lanes.wait_on(lane, *use);
  }
  dropped.away = true;
  memory_.traffic.dropped_bytes += live.size;
  live.drop();
  live.uses.add(use->lane, use->position);
  return true;
}

bool Repeats::has_room(uint32_t repeat) noexcept {
  Check check;
  const bool room = take_cells(repeat, proven(repeat), &check);
  give_cells_back(&check);
  return room;
}

// The tensor was dropped, and was made again in this iteration: that digest is as good as two of its own.
bool Repeats::shows_itself(const Repeat& again, uint32_t tensor) const noexcept {
  const bool shown = std::find(again.shown.begin(), again.shown.end(), tensor) != again.shown.end();
  return shown && dropped_[tensor].made_again;
}

bool Repeats::take_cells(uint32_t repeat, bool trusts_shown, Check* check) noexcept {
  const Repeat& again = plan_index_->repeats[repeat];
  for (const uint32_t tensor : again.unchanged) {
    if (trusts_shown && shows_itself(again, tensor)) continue;
    check->unchanged.push_back({tensor, take_cell(memory_), take_cell(memory_)});
  }
  for (const uint32_t tensor : again.outputs) {
    // Where it was not dropped it is there, and must stay as it is.
    const bool dropped = dropped_[tensor].cell != kNoDigest;
    if (dropped) check->outputs.push_back({tensor, kNoDigest, take_cell(memory_)});
    if (!dropped) check->unchanged.push_back({tensor, take_cell(memory_), take_cell(memory_)});
  }
  const auto have = [](const DigestPair& pair) { return pair.after != kNoDigest; };  // taken last
  const bool all = std::all_of(check->unchanged.begin(), check->unchanged.end(), have) &&
                   std::all_of(check->outputs.begin(), check->outputs.end(), have);
  if (!all) give_cells_back(check);
  return all;
}

void Repeats::give_cells_back(Check* check) noexcept {
  for (auto* pairs : {&check->unchanged, &check->outputs}) {
    for (DigestPair& pair : *pairs) {
      memory_.digests.give_back(&pair.before);
      memory_.digests.give_back(&pair.after);
    }
  }
}

CUresult Repeats::launch_between_digests(const Check& check, CUstream stream) noexcept {
  const Command& command = launches_[check.repeat].command;
  CUresult result = CUDA_SUCCESS;
  for (const DigestPair& pair : check.unchanged) {
    if (result == CUDA_SUCCESS) result = digest(pair.tensor, pair.before, stream);
  }
  if (result == CUDA_SUCCESS) {
    const Performing performing(command.sequence);
    result = command.issue(command.payload, stream);
  }
  for (const auto* pairs : {&check.unchanged, &check.outputs}) {
    for (const DigestPair& pair : *pairs) {
      if (result == CUDA_SUCCESS) result = digest(pair.tensor, pair.after, stream);
    }
  }
  return result;
}

bool Repeats::issue(Instance instance, LaneIndex lane, CUresult* result, LaneUse* use) noexcept {
  Check check;
  check.instance = instance;
  check.repeat = plan_index_->repeat_of[instance.vertex];
  check.waited_for = !proven(check.repeat);
  if (!take_cells(check.repeat, !check.waited_for, &check)) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  *result = launch_between_digests(check, memory_.lanes.stream(lane));
  check.use = *use = {lane, memory_.lanes.advance(lane)};
  memory_.lanes.mark(lane);
  if (*result != CUDA_SUCCESS) {
    for (const DigestPair& pair : check.outputs) activation_.tensor(pair.tensor)->not_remade();
    memory_.lanes.synchronize();  // some digests may be with the driver
    give_cells_back(&check);
    return false;
  }
  for (DigestPair& pair : check.outputs) {
    Dropped& dropped = dropped_[pair.tensor];
    ResidentTensor& live = *activation_.tensor(pair.tensor);
    pair.before = std::exchange(dropped.cell, kNoDigest);
    dropped.away = false;
    dropped.made_again = true;
    live.remade();
    live.uses.add(lane, use->position);
  }
  for (const uint32_t tensor : plan_index_->repeats[check.repeat].unchanged) {
    if (ResidentTensor* const live = activation_.tensor(tensor)) live->uses.add(lane, use->position);
  }
  for (const DigestPair& pair : check.unchanged) {  // also outputs that were not dropped
    if (ResidentTensor* const live = activation_.tensor(pair.tensor)) live->uses.add(lane, use->position);
  }
  const bool waited_for = check.waited_for;
  checks_.push_back(std::move(check));
  ++memory_.traffic.repeated_launches;
  return waited_for;
}

bool Repeats::same(const DigestPair& pair) const noexcept {
  return pair.before != kNoDigest && memory_.digests.equal(pair.before, pair.after);
}

bool Repeats::advance(const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept {
  bool good = true;
  for (size_t i = 0; i < checks_.size();) {
    if (!memory_.lanes.known_complete(checks_[i].use)) {
      ++i;
      continue;
    }
    Check check = std::move(checks_[i]);
    checks_.erase(checks_.begin() + static_cast<std::ptrdiff_t>(i));
    good = verdict(check, done, why) && good;
  }
  return good;
}

bool Repeats::verdict(Check& check, const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept {
  // A device that failed has computed nothing: that is told elsewhere.
  const bool failed = memory_.lanes.fault() != CUDA_SUCCESS || !memory_.digests.available();
  const auto equal = [this](const DigestPair& pair) { return same(pair); };
  const bool reads_only = std::all_of(check.unchanged.begin(), check.unchanged.end(), equal);
  const bool makes_same = std::all_of(check.outputs.begin(), check.outputs.end(), equal);
  LaneUse use = check.use;
  bool good = !failed && reads_only && makes_same;
  if (good) {
    (*proofs_)[check.repeat] = true;
  } else {
    const bool restored = reads_only && check.waited_for && restore(check, &use);
    blame(check.repeat, restored, why);
  }
  for (const DigestPair& pair : check.outputs) {
    Dropped& dropped = dropped_[pair.tensor];
    if (std::exchange(dropped.copied, false)) drop_host_copy(memory_, *activation_.tensor(pair.tensor));
  }
  give_cells_back(&check);
  if (check.waited_for) done(check.instance, use);
  return good;
}

// What was dropped is still on the host, and nothing has used what the repeat made of it.
bool Repeats::restore(const Check& check, LaneUse* use) noexcept {
  for (const DigestPair& pair : check.outputs) {
    if (same(pair)) continue;
    if (!dropped_[pair.tensor].copied) return false;
    ResidentTensor& live = *activation_.tensor(pair.tensor);
    LaneUses after;
    after.add(use->lane, use->position);
    if (memory_.lanes.enter_own() != CUDA_SUCCESS) return false;
    const std::vector<ChunkIndex>& chunks = memory_.mappings.find(live.base)->chunks;
    if (copy_in(memory_, live, chunks, after, use) != CUDA_SUCCESS) return false;
    live.uses.add(use->lane, use->position);
  }
  return true;
}

void Repeats::blame(uint32_t repeat, bool harmless, std::string* why) noexcept {
  const Command& command = launches_[repeat].command;
  *why = words<Cause::repeat_was_other>(command.name);
  if (memory_.lanes.fault() != CUDA_SUCCESS) return;
  examiner_.disprove(command);
  if (harmless) {
    say<Cause::repeat_differed>(*why);
  } else if (shared_.faults.lose(CUDA_ERROR_LAUNCH_FAILED)) {
    say<Cause::repeat_lost_bytes>(*why);
  }
}

bool Repeats::conclude(const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept {
  for (const Check& check : checks_) {
    LaneUses uses;
    uses.add(check.use.lane, check.use.position);
    memory_.lanes.host_wait(uses);
  }
  return advance(done, why);
}

// Nothing has its bytes, also where it has its chunks again: only while it is dropping they are still in there.
bool Repeats::is_away(uint32_t tensor) const noexcept {
  const ResidentTensor* const live = activation_.tensor(tensor);
  return dropped_[tensor].away && live != nullptr && live->state() != Residency::State::dropping && !live->host_valid();
}

void Repeats::rebuild() noexcept {
  for (uint32_t r = 0; r < launches_.size(); ++r) {
    const std::vector<uint32_t>& outputs = plan_index_->repeats[r].outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [this](uint32_t tensor) { return is_away(tensor); })) continue;
    const bool made = rebuild(r);
    for (const uint32_t tensor : outputs) {
      if (!made && is_away(tensor)) activation_.tensor(tensor)->lose();
      dropped_[tensor].away = false;
    }
  }
  for (uint32_t tensor = 0; tensor < dropped_.size(); ++tensor) {
    dropped_[tensor].away = dropped_[tensor].copied = false;
    memory_.digests.give_back(&dropped_[tensor].cell);
    if (ResidentTensor* const live = activation_.tensor(tensor)) live->end_drop();
  }
}

// On a stream of our own: the device is idle.
bool Repeats::rebuild(uint32_t repeat) noexcept {
  std::vector<ResidentTensor*> set;
  const Repeat& again = plan_index_->repeats[repeat];
  for (const auto* tensors : {&again.unchanged, &again.outputs}) {
    for (const uint32_t tensor : *tensors) {
      ResidentTensor* live = activation_.tensor(tensor);
      if (live == nullptr) live = memory_.blocks.find(plan_index_->addresses[tensor]);
      if (live == nullptr || live->is_lost()) return false;
      set.push_back(live);
    }
  }
  const LaneIndex lane = Lanes::kToDevice;
  CUresult result = pager_.make_resident(set);
  for (ResidentTensor* each : set) {
    if (result == CUDA_SUCCESS) result = memory_.lanes.wait_on(lane, each->ready);
    if (result == CUDA_SUCCESS) result = memory_.lanes.wait_on(lane, memory_.mover_of(*each).ready);
  }
  if (result == CUDA_SUCCESS) result = memory_.lanes.enter_own();
  Check check;
  check.repeat = repeat;
  if (result != CUDA_SUCCESS || !take_cells(repeat, false, &check)) return false;
  result = launch_between_digests(check, memory_.lanes.stream(lane));
  LaneUses uses;
  check.use = {lane, memory_.lanes.advance(lane)};
  uses.add(lane, check.use.position);
  if (result == CUDA_SUCCESS) result = memory_.lanes.host_wait(uses);
  for (DigestPair& pair : check.outputs) pair.before = std::exchange(dropped_[pair.tensor].cell, kNoDigest);
  for (const uint32_t tensor : again.outputs) memory_.touched(*activation_.tensor(tensor), check.use, true);
  std::string why;
  const bool good = result == CUDA_SUCCESS && verdict(
                                                  check, [](Instance, LaneUse) {}, &why);
  return good;
}

}  // namespace reprise::replay
