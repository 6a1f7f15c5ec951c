// What is tried, in this order. "from before": the operands hold what they held before the first launch.
//
//     again from before, twice, the second    other bytes: not pure, and nothing more is tried
//     time beside another kernel
//     what it changed: from what it left, and from two patterns
//         the same bytes each time            overwritten: what was there is not used
//     what it did not change: each word disturbed in its lowest bits, one operand at a time, then all, otherwise
//         disturbed bytes stay                kept
//         results are others                  reached
//
// Patterns only go where the kernel has shown that it does not use what is there, and disturbed are only operands that
// look like numbers, and of them the numbers: disturbance.h.
#include "replay/examine/trials.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "replay/base/run_log.h"

namespace reprise::replay {
namespace {

constexpr unsigned char kPatterns[] = {0xa5, 0x5a};  // one odd, one even: of numbers, other bits are turned
// In each half of a word: the last bit but one or two of a float's fraction, whether it has 2, 4 or 8 bytes.
constexpr uint32_t kDisturbances[] = {0x00010001, 0x00020002};
constexpr size_t kMostAlone = 6;  // operands that are tried one at a time
constexpr int kCompany = 8;       // kernels that run beside it, one after the other

}  // namespace

Trials::Trials(Lanes* lanes, Digests* digests, HostCopies* memory, LaneIndex lane, std::vector<TriedOperand> operands,
               Launcher launcher) noexcept
    : lanes_(*lanes),
      digests_(*digests),
      memory_(*memory),
      lane_(lane),
      operands_(std::move(operands)),
      launcher_(launcher),
      copies_(operands_.size()) {}

Trials::~Trials() {
  digests_.give_back(&now_);
  for (Copies& copies : copies_) {
    digests_.give_back(&copies.left);
    digests_.give_back(&copies.put);
  }
}

uint64_t Trials::bytes_of_copies(const std::vector<TriedOperand>& operands) noexcept {
  uint64_t all = 0;
  uint64_t largest = 0;
  for (const TriedOperand& operand : operands) {
    all += 2 * HostCopies::taken_by(operand.bytes);
    largest = std::max(largest, HostCopies::taken_by(operand.bytes));
  }
  return all + largest;
}

bool Trials::keep() noexcept {
  if (lanes_.enter_own() != CUDA_SUCCESS || !memory_.reset(bytes_of_copies(operands_))) return false;
  if (digests_.available()) {
    now_ = digests_.take();
    for (Copies& copies : copies_) {
      copies.left = digests_.take();
      copies.put = digests_.take();
    }
  }
  uint64_t largest = 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    copies_[i].before = memory_.take(operands_[i].bytes);
    largest = std::max(largest, operands_[i].bytes);
    if (!read(i, copies_[i].before)) return false;
    digest(i, copies_[i].put);
  }
  scratch_ = memory_.take(largest);
  return lanes_.fault() == CUDA_SUCCESS;
}

bool Trials::hold_address(const LiveRanges& live) const noexcept {
  if (live.empty()) return false;
  const auto is_live = [&](CUdeviceptr word) {
    if (word < live.front().first || word >= live.back().second) return false;
    const auto behind = std::upper_bound(live.begin(), live.end(), word,
                                         [](CUdeviceptr at, const auto& range) { return at < range.first; });
    return behind != live.begin() && word < std::prev(behind)->second;
  };
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (uint64_t at = 0; at + 8 <= operands_[i].bytes; at += 8) {
      uint64_t word;
      std::memcpy(&word, copies_[i].before + at, sizeof word);
      if (is_live(word)) return true;
    }
  }
  return false;
}

CUresult Trials::launch() noexcept { return launcher_.launch(launcher_.user); }

bool Trials::launch_and_wait() noexcept {
  if (launch() != CUDA_SUCCESS) return false;
  const LaneUse use{lane_, lanes_.advance(lane_)};
  const uint64_t until = RunLogWriter::now_ns() + kPatience;
  while (!lanes_.complete(use)) {
    if (lanes_.fault() != CUDA_SUCCESS || RunLogWriter::now_ns() > until) return false;
    const timespec nap{0, 5'000};
    nanosleep(&nap, nullptr);
  }
  return lanes_.fault() == CUDA_SUCCESS;
}

CUresult Trials::first(bool* done) noexcept {
  *done = false;
  const CUresult result = launch();
  if (result != CUDA_SUCCESS) return result;
  // The caller counts this launch among its lane's work.
  CUevent event = nullptr;
  if (driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return result;
  CUresult state = driver().cuEventRecord(event, lanes_.stream(lane_));
  const uint64_t until = RunLogWriter::now_ns() + kPatience;
  while (state == CUDA_SUCCESS && (state = driver().cuEventQuery(event)) == CUDA_ERROR_NOT_READY &&
         RunLogWriter::now_ns() < until) {
    state = CUDA_SUCCESS;
    const timespec nap{0, 5'000};
    nanosleep(&nap, nullptr);
  }
  driver().cuEventDestroy(event);
  if (state != CUDA_SUCCESS || driver().cuStreamQuery(lanes_.stream(lane_)) != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < operands_.size(); ++i) {
    Copies& copies = copies_[i];
    copies.after = copies.before;
    bool same = false;
    if (!holds(i, copies.before, copies.put, &same)) return result;
    if (!same) {
      copies.changed = true;
      copies.after = memory_.take(operands_[i].bytes);
      if (!read(i, copies.after)) return result;
      copies.counted = has_counted(around_first(i));
    }
    digest(i, copies.left);
    if (lanes_.fault() != CUDA_SUCCESS) return result;
  }
  *done = true;
  return result;
}

bool Trials::read(size_t i, unsigned char* to) noexcept {
  if (lanes_.enter_own() != CUDA_SUCCESS) return false;
  const CUstream stream = lanes_.stream(Lanes::kToHost);
  if (driver().cuMemcpyDtoHAsync(to, operands_[i].base, operands_[i].bytes, stream) != CUDA_SUCCESS) return false;
  LaneUses uses;
  uses.add(Lanes::kToHost, lanes_.advance(Lanes::kToHost));
  return lanes_.host_wait(uses) == CUDA_SUCCESS;
}

bool Trials::digest(size_t i, DigestCell cell) noexcept {
  if (cell == kNoDigest || !digests_.available() || lanes_.enter_own() != CUDA_SUCCESS) return false;
  const CUstream stream = lanes_.stream(Lanes::kToHost);
  const TriedOperand& operand = operands_[i];
  const bool issued = digests_.begin(cell, stream) == CUDA_SUCCESS &&
                      digests_.add(cell, operand.base, operand.bytes, 0, stream) == CUDA_SUCCESS &&
                      digests_.finish(cell, stream) == CUDA_SUCCESS;
  LaneUses uses;
  uses.add(Lanes::kToHost, lanes_.advance(Lanes::kToHost));
  return issued && lanes_.host_wait(uses) == CUDA_SUCCESS;
}

bool Trials::holds(size_t i, const unsigned char* bytes, DigestCell of_them, bool* same) noexcept {
  if (of_them != kNoDigest && digest(i, now_)) {
    *same = digests_.equal(of_them, now_);
    return true;
  }
  if (!read(i, scratch_)) return false;
  *same = std::memcmp(scratch_, bytes, operands_[i].bytes) == 0;
  return true;
}

// What disturb() has put there. Without digests the bytes are made again.
bool Trials::holds_disturbed(size_t i, uint32_t pattern, bool* same) noexcept {
  const TriedOperand& operand = operands_[i];
  if (copies_[i].put != kNoDigest && digest(i, now_)) {
    *same = digests_.equal(copies_[i].put, now_);
    return true;
  }
  const std::unique_ptr<unsigned char[]> put(new (std::nothrow) unsigned char[operand.bytes]);
  if (put == nullptr) return false;
  disturb_words(put.get(), copies_[i].before, operand.bytes, pattern);
  return holds(i, put.get(), kNoDigest, same);
}

bool Trials::write(size_t i, const unsigned char* from) noexcept {
  copies_[i].disturbed = from != copies_[i].after;
  if (lanes_.enter_own() != CUDA_SUCCESS) return false;
  const Performing moves(Performing::kMoves);
  const CUstream stream = lanes_.stream(Lanes::kToDevice);
  if (driver().cuMemcpyHtoDAsync(operands_[i].base, from, operands_[i].bytes, stream) != CUDA_SUCCESS) return false;
  LaneUses uses;
  uses.add(Lanes::kToDevice, lanes_.advance(Lanes::kToDevice));
  return lanes_.host_wait(uses) == CUDA_SUCCESS;
}

AroundLaunch Trials::around_first(size_t i) const noexcept {
  return {copies_[i].before, copies_[i].after, operands_[i].bytes};
}

bool Trials::lay(size_t i, const unsigned char* pattern) noexcept {
  Copies& copies = copies_[i];
  if (copies.counted) {
    copies.covered = false;
    return write(i, copies.before);
  }
  if (pattern == nullptr) return write(i, copies.after);
  copies.covered = lay_pattern(scratch_, around_first(i), *pattern) && copies.covered;
  return write(i, scratch_);
}

bool Trials::disturb(size_t i, uint32_t pattern) noexcept {
  disturb_words(scratch_, copies_[i].before, operands_[i].bytes, pattern);
  if (!write(i, scratch_)) return false;
  digest(i, copies_[i].put);
  return lanes_.fault() == CUDA_SUCCESS;
}

// Everything as before the first launch.
bool Trials::rewind() noexcept {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if ((copies_[i].changed || copies_[i].disturbed) && !write(i, copies_[i].before)) return false;
  }
  return true;
}

// *same: every operand but this one holds what the first launch left there.
bool Trials::as_first(size_t but, bool* same) noexcept {
  *same = true;
  for (size_t i = 0; i < operands_.size(); ++i) {
    Copies& copies = copies_[i];
    if (i == but) continue;
    bool equal = false;
    if (!holds(i, copies.after, copies.left, &equal)) return false;
    copies.disturbed = !equal;
    *same = *same && equal;
  }
  return true;
}

// Others are with the device while it runs, which orders its blocks, and so its atomics, in another way: our kernel
// that reads, over the largest operand. Where there is none, it runs alone.
bool Trials::begin_company() noexcept {
  if (operands_.empty() || !digests_.available()) return true;
  const auto smaller = [](const TriedOperand& a, const TriedOperand& b) { return a.bytes < b.bytes; };
  const TriedOperand& largest = *std::max_element(operands_.begin(), operands_.end(), smaller);
  DigestCell cell = digests_.take();
  if (cell == kNoDigest) return true;
  if (lanes_.enter_own() != CUDA_SUCCESS) return false;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < kCompany && result == CUDA_SUCCESS; ++i) {
    result = digests_.add(cell, largest.base, largest.bytes, 0, lanes_.stream(Lanes::kToHost));
  }
  lanes_.advance(Lanes::kToHost);
  digests_.give_back(&cell);  // its next digest begins on whatever stream: reading the operands waits for this one
  return result == CUDA_SUCCESS;
}

bool Trials::repeats(bool* same) noexcept {
  *same = true;
  for (int i = 0; i < 2 && *same; ++i) {
    from_ = phrase<Cause::from_same>();
    if (!rewind() || (i == 1 && !begin_company()) || !launch_and_wait() || !as_first(operands_.size(), same))
      return false;
  }
  return true;
}

// *same: whatever is in the operands of `set` before, the launch leaves the same.
bool Trials::overwrites(const std::vector<size_t>& set, bool* same) noexcept {
  const auto prepare = [&](const unsigned char* pattern) {
    if (!rewind()) return false;
    return std::all_of(set.begin(), set.end(), [&](size_t i) { return lay(i, pattern); });
  };
  *same = true;
  for (const unsigned char* pattern : {static_cast<const unsigned char*>(nullptr), &kPatterns[0], &kPatterns[1]}) {
    if (!*same) return true;
    from_ = pattern == nullptr ? phrase<Cause::from_results>() : phrase<Cause::from_other_results>();
    if (!prepare(pattern) || !launch_and_wait() || !as_first(operands_.size(), same)) return false;
  }
  return true;
}

// With the operands of `set`, which the first launch did not change, disturbed: (*kept)[i]: they are as they were
// disturbed; *reached: another operand has other bytes than behind the first launch.
bool Trials::keeps(const std::vector<size_t>& set, uint32_t pattern, std::vector<bool>* kept, bool* reached) noexcept {
  if (!rewind()) return false;
  for (const size_t i : set) {
    if (!disturb(i, pattern)) return false;
  }
  from_ = phrase<Cause::from_other_operands>();
  if (!launch_and_wait()) return false;
  *reached = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    Copies& copies = copies_[i];
    const bool disturbed = std::find(set.begin(), set.end(), i) != set.end();
    bool same = false;
    if (disturbed) {
      if (!holds_disturbed(i, pattern, &same)) return false;
      (*kept)[i] = (*kept)[i] && same;
      copies.disturbed = true;
      continue;
    }
    if (!holds(i, copies.after, copies.left, &same)) return false;
    copies.disturbed = !same;
    *reached = *reached || copies.disturbed;
  }
  return true;
}

// What it has changed, or may have left as it was because the same bytes were there already.
bool Trials::may_be_written(size_t i) const noexcept { return copies_[i].changed || operands_[i].overwritten; }

bool Trials::try_changed(std::vector<facts::SlotEvidence>* slots) noexcept {
  std::vector<size_t> changed;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (may_be_written(i)) changed.push_back(i);
  }
  if (changed.empty()) return true;
  bool all = false;
  if (!overwrites(changed, &all)) return false;
  for (const size_t i : changed) {
    bool alone = all;
    const bool worth_it = !all && changed.size() > 1 && changed.size() <= kMostAlone;
    if (worth_it && !overwrites({i}, &alone)) return false;
    facts::SlotEvidence& slot = (*slots)[i];
    ++(!alone ? slot.updated : copies_[i].covered ? slot.overwritten : slot.written);
  }
  return true;
}

bool Trials::try_kept(std::vector<facts::SlotEvidence>* slots) noexcept {
  std::vector<size_t> set;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (may_be_written(i)) continue;
    if (looks_like_numbers(copies_[i].before, operands_[i].bytes)) {
      set.push_back(i);
    } else {
      ++(*slots)[i].same;
    }
  }
  if (set.empty()) return true;
  std::vector<bool> kept(operands_.size(), true);
  bool reached = false;
  if (set.size() <= kMostAlone) {
    for (const size_t i : set) {
      if (!keeps({i}, kDisturbances[0], &kept, &reached)) return false;
      if (reached) ++(*slots)[i].reached;
    }
  } else if (!keeps(set, kDisturbances[0], &kept, &reached)) {
    return false;
  }
  if (!keeps(set, kDisturbances[1], &kept, &reached)) return false;
  for (const size_t i : set) ++(kept[i] ? (*slots)[i].kept : (*slots)[i].updated);
  return true;
}

bool Trials::restore() noexcept {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (copies_[i].disturbed && !write(i, copies_[i].after)) return false;
  }
  return true;
}

bool Trials::run(facts::KernelFacts* facts) noexcept {
  std::vector<facts::SlotEvidence> slots(operands_.size());
  for (size_t i = 0; i < operands_.size(); ++i) {
    slots[i].parameter_offset = operands_[i].parameter_offset;
    slots[i].least_bytes = slots[i].most_bytes = operands_[i].bytes;
  }
  bool same = false;
  if (!repeats(&same)) return false;
  facts->launches = 1;
  ++(same ? facts->equal : facts->unequal);
  if (same && (!try_changed(&slots) || !try_kept(&slots))) return false;
  for (size_t i = 0; !same && i < operands_.size(); ++i) ++(copies_[i].changed ? slots[i].updated : slots[i].same);
  if (!restore()) return false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!operands_[i].several) facts->slots.push_back(slots[i]);
  }
  std::sort(facts->slots.begin(), facts->slots.end(),
            [](const auto& a, const auto& b) { return a.parameter_offset < b.parameter_offset; });
  return true;
}

}  // namespace reprise::replay
