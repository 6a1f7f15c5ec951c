#include "replay/follow/loop_counter.h"

#include <algorithm>
#include <utility>

#include "preload/trace/signature.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {

bool is_of_program(const plan::Call& call) noexcept { return !call.inserted && call.recompute_of == plan::kNone; }

bool allocates(const plan::Call& call) noexcept {
  return call.kind == plan::CallKind::allocate || call.kind == plan::CallKind::allocate_handover;
}

}  // namespace

LoopWord word_of(uint64_t signature, uint64_t structure, uint64_t live_count, uint64_t live_bytes) noexcept {
  return {trace::hash_mix(trace::hash_mix(signature, live_count), live_bytes), trace::hash_mix(structure, live_count)};
}

std::vector<uint64_t> words_of(const PlanIndex& index) noexcept {
  const plan::Plan& plan = index.plan;
  uint64_t count = index.persistent_count;
  uint64_t bytes = 0;
  for (size_t tensor = 0; tensor < index.persistent_count; ++tensor) bytes += plan.tensors[tensor].size;
  std::vector<uint64_t> words;
  for (const plan::Call& call : plan.calls) {
    if (!is_of_program(call)) continue;
    const LoopWord of_call = word_of(call.signature, structure_of(call), count, bytes);
    words.push_back(has_any_size(call) ? of_call.any_size : of_call.exact);
    if (call.kind == plan::CallKind::op || call.tensor >= plan.tensors.size()) continue;
    const uint64_t size = plan.tensors[call.tensor].size;
    count = allocates(call) ? count + 1 : count - 1;
    bytes = allocates(call) ? bytes + size : bytes - size;
  }
  return words;
}

// Where the program does something else than the loop, the last calls may be the first ones of another iteration: the
// search of Knuth, Morris and Pratt.
LoopCounter::LoopCounter(std::vector<uint64_t> words, bool sizes_vary) noexcept
    : words_(std::move(words)), sizes_vary_(sizes_vary), shorter_(words_.size(), 0) {
  uint32_t same = 0;
  for (uint32_t i = 1; i < words_.size(); ++i) {
    shorter_[i] = same;
    while (same > 0 && words_[i] != words_[same]) same = shorter_[same];
    if (words_[i] == words_[same]) ++same;
  }
}

void LoopCounter::add(uint64_t word) noexcept {
  if (words_.empty()) return;
  const uint32_t before = over_;
  while (over_ > 0 && words_[over_] != word) over_ = shorter_[over_];
  if (words_[over_] == word) ++over_;
  if (over_ <= before && 2 * uint64_t{before} >= words_.size()) ++unfinished_;
  if (over_ < words_.size()) return;
  ++finished_;
  over_ = 0;
}

void LoopCounter::left_plan_at(uint32_t plan_call, const PlanIndex& index) noexcept {
  const auto end = index.plan.calls.begin() + std::min<ptrdiff_t>(plan_call, std::ssize(index.plan.calls));
  over_ = static_cast<uint32_t>(std::count_if(index.plan.calls.begin(), end, is_of_program));
  if (over_ >= words_.size()) over_ = 0;
}

}  // namespace reprise::replay
