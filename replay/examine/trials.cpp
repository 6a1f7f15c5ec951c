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
#include <numeric>
#include <utility>

#include "preload/base/causes.h"
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
      lane_(lane),
      launcher_(launcher),
      bytes_(lanes, digests, memory, std::move(operands)) {}

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
  *done = bytes_.look_behind_first();
  return result;
}

// Others are with the device while it runs, which orders its blocks, and so its atomics, in another way: our kernel
// that reads, over the largest operand. Where there is none, it runs alone.
bool Trials::begin_company() noexcept {
  if (bytes_.operands().empty() || !digests_.available()) return true;
  const auto smaller = [](const TriedOperand& a, const TriedOperand& b) { return a.bytes < b.bytes; };
  const TriedOperand& largest = *std::max_element(bytes_.operands().begin(), bytes_.operands().end(), smaller);
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
    if (!bytes_.rewind() || (i == 1 && !begin_company()) || !launch_and_wait() ||
        !bytes_.as_first(bytes_.operands().size(), same))
      return false;
  }
  return true;
}

// *same: whatever is in the operands of `set` before, the launch leaves the same.
bool Trials::overwrites(const std::vector<size_t>& set, bool* same) noexcept {
  const auto prepare = [&](const unsigned char* pattern) {
    if (!bytes_.rewind()) return false;
    return std::all_of(set.begin(), set.end(), [&](size_t i) { return bytes_.lay(i, pattern); });
  };
  *same = true;
  for (const unsigned char* pattern : {static_cast<const unsigned char*>(nullptr), &kPatterns[0], &kPatterns[1]}) {
    if (!*same) return true;
    from_ = pattern == nullptr ? phrase<Cause::from_results>() : phrase<Cause::from_other_results>();
    if (!prepare(pattern) || !launch_and_wait() || !bytes_.as_first(bytes_.operands().size(), same)) return false;
  }
  return true;
}

// With the operands of `set`, which the first launch did not change, disturbed: (*kept)[i]: they are as they were
// disturbed; *reached: another operand has other bytes than behind the first launch.
bool Trials::keeps(const std::vector<size_t>& set, uint32_t pattern, std::vector<bool>* kept, bool* reached) noexcept {
  if (!bytes_.rewind()) return false;
  for (const size_t i : set) {
    if (!bytes_.disturb(i, pattern)) return false;
  }
  from_ = phrase<Cause::from_other_operands>();
  if (!launch_and_wait()) return false;
  *reached = false;
  for (size_t i = 0; i < bytes_.operands().size(); ++i) {
    OperandBytes::Copies& copies = bytes_.of(i);
    const bool disturbed = std::find(set.begin(), set.end(), i) != set.end();
    bool same = false;
    if (disturbed) {
      if (!bytes_.holds_disturbed(i, pattern, &same)) return false;
      (*kept)[i] = (*kept)[i] && same;
      copies.disturbed = true;
      continue;
    }
    if (!bytes_.holds(i, copies.after, copies.left, &same)) return false;
    copies.disturbed = !same;
    *reached = *reached || copies.disturbed;
  }
  return true;
}

bool Trials::try_changed(std::vector<facts::SlotEvidence>* slots) noexcept {
  std::vector<size_t> changed;
  for (size_t i = 0; i < bytes_.operands().size(); ++i) {
    if (bytes_.may_be_written(i)) changed.push_back(i);
  }
  if (changed.empty()) return true;
  bool all = false;
  if (!overwrites(changed, &all)) return false;
  for (const size_t i : changed) {
    bool alone = all;
    const bool worth_it = !all && changed.size() > 1 && changed.size() <= kMostAlone;
    if (worth_it && !overwrites({i}, &alone)) return false;
    facts::SlotEvidence& slot = (*slots)[i];
    ++(!alone ? slot.updated : bytes_.of(i).covered ? slot.overwritten : slot.written);
  }
  return true;
}

bool Trials::try_kept(std::vector<facts::SlotEvidence>* slots) noexcept {
  std::vector<size_t> set;
  for (size_t i = 0; i < bytes_.operands().size(); ++i) {
    if (bytes_.may_be_written(i)) continue;
    if (looks_like_numbers(bytes_.of(i).before, bytes_.operands()[i].bytes)) {
      set.push_back(i);
    } else {
      ++(*slots)[i].same;
    }
  }
  if (set.empty()) return true;
  std::vector<bool> kept(bytes_.operands().size(), true);
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

bool Trials::run(facts::KernelFacts* facts) noexcept {
  std::vector<facts::SlotEvidence> slots(bytes_.operands().size());
  for (size_t i = 0; i < bytes_.operands().size(); ++i) {
    slots[i].parameter_offset = bytes_.operands()[i].parameter_offset;
    slots[i].least_bytes = slots[i].most_bytes = bytes_.operands()[i].bytes;
  }
  bool same = false;
  if (!repeats(&same)) return false;
  facts->launches = 1;
  ++(same ? facts->equal : facts->unequal);
  if (same && (!try_changed(&slots) || !try_kept(&slots))) return false;
  for (size_t i = 0; !same && i < bytes_.operands().size(); ++i)
    ++(bytes_.of(i).changed ? slots[i].updated : slots[i].same);
  if (!bytes_.restore()) return false;
  for (size_t i = 0; i < bytes_.operands().size(); ++i) {
    if (!bytes_.operands()[i].several) facts->slots.push_back(slots[i]);
  }
  std::sort(facts->slots.begin(), facts->slots.end(),
            [](const auto& a, const auto& b) { return a.parameter_offset < b.parameter_offset; });
  return true;
}

}  // namespace reprise::replay
