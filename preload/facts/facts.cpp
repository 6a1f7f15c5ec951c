#include "preload/facts/facts.h"

#include <algorithm>

namespace reprise::facts {
namespace {

SlotEvidence& slot_of(KernelFacts& facts, uint32_t parameter_offset) {
  const auto at =
      std::lower_bound(facts.slots.begin(), facts.slots.end(), parameter_offset,
                       [](const SlotEvidence& slot, uint32_t wanted) { return slot.parameter_offset < wanted; });
  if (at != facts.slots.end() && at->parameter_offset == parameter_offset) return *at;
  SlotEvidence fresh;
  fresh.parameter_offset = parameter_offset;
  return *facts.slots.insert(at, fresh);
}

}  // namespace

const SlotEvidence* find_slot(const KernelFacts& facts, uint32_t parameter_offset) noexcept {
  for (const SlotEvidence& slot : facts.slots) {
    if (slot.parameter_offset == parameter_offset) return &slot;
  }
  return nullptr;
}

Answer writes(const KernelFacts& facts, uint32_t parameter_offset) noexcept {
  const SlotEvidence* const slot = find_slot(facts, parameter_offset);
  if (slot == nullptr) return Answer::unknown;
  if (slot->overwritten + slot->updated != 0) return Answer::yes;
  return slot->kept != 0 ? Answer::no : Answer::unknown;
}

Answer reads(const KernelFacts& facts, uint32_t parameter_offset) noexcept {
  const SlotEvidence* const slot = find_slot(facts, parameter_offset);
  if (slot == nullptr) return Answer::unknown;
  if (slot->updated + slot->reached != 0) return Answer::yes;
  // An operand that was only ever overwritten; where it once was not, it may have been read.
  const bool only_overwritten = slot->overwritten != 0 && slot->kept + slot->same == 0;
  return only_overwritten ? Answer::no : Answer::unknown;
}

Answer pure(const KernelFacts& facts) noexcept {
  if (facts.unequal != 0) return Answer::no;
  return facts.equal != 0 ? Answer::yes : Answer::unknown;
}

void merge(KernelFacts& facts, const KernelFacts& more) {
  facts.kernel = more.kernel;
  if (facts.name.empty()) facts.name = more.name;
  if (facts.device.empty()) facts.device = more.device;
  facts.launches += more.launches;
  facts.equal += more.equal;
  facts.unequal += more.unequal;
  if (facts.first_day.empty() || more.first_day < facts.first_day) facts.first_day = more.first_day;
  facts.last_day = std::max(facts.last_day, more.last_day);
  for (const SlotEvidence& from : more.slots) {
    SlotEvidence& slot = slot_of(facts, from.parameter_offset);
    slot.overwritten += from.overwritten;
    slot.updated += from.updated;
    slot.kept += from.kept;
    slot.same += from.same;
    slot.reached += from.reached;
    slot.least_bytes = slot.most_bytes == 0 ? from.least_bytes : std::min(slot.least_bytes, from.least_bytes);
    slot.most_bytes = std::max(slot.most_bytes, from.most_bytes);
  }
}

}  // namespace reprise::facts
