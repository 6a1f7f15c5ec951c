#include "preload/facts/facts.h"

#include <algorithm>
#include <tuple>

#include "preload/trace/signature.h"

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

std::vector<AuditedShape>::const_iterator place_of(const KernelFacts& facts, uint64_t shape) {
  return std::lower_bound(facts.shapes.begin(), facts.shapes.end(), shape,
                          [](const AuditedShape& entry, uint64_t wanted) { return entry.shape < wanted; });
}

void add_shape(KernelFacts& facts, const AuditedShape& more) {
  const auto at = facts.shapes.begin() + (place_of(facts, more.shape) - facts.shapes.begin());
  if (at != facts.shapes.end() && at->shape == more.shape) {
    at->launches += more.launches;
  } else if (facts.shapes.size() < kMostShapes) {
    facts.shapes.insert(at, more);
  }
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
  if (slot->overwritten + slot->written + slot->updated != 0) return Answer::yes;
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

uint64_t shape_of(const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
                  std::vector<ShapeOperand> operands) {
  std::sort(operands.begin(), operands.end(), [](const ShapeOperand& a, const ShapeOperand& b) {
    return std::tie(a.parameter_offset, a.bytes) < std::tie(b.parameter_offset, b.bytes);
  });
  uint64_t hash = trace::hash_mix(0x6a09e667f3bcc908ull, shared_bytes);
  for (int i = 0; i < 3; ++i) hash = trace::hash_mix(hash, (uint64_t{grid[i]} << 32) | block[i]);
  for (const ShapeOperand& operand : operands) {
    hash = trace::hash_mix(trace::hash_mix(hash, operand.parameter_offset), operand.bytes);
  }
  return hash;
}

Answer audited(const KernelFacts& facts, uint64_t shape) noexcept {
  if (facts.strayed != 0) return Answer::no;
  const auto at = place_of(facts, shape);
  const bool enough = at != facts.shapes.end() && at->shape == shape && at->launches >= kAuditedLaunches;
  return enough ? Answer::yes : Answer::unknown;
}

uint64_t audited_launches(const KernelFacts& facts) noexcept {
  uint64_t launches = 0;
  for (const AuditedShape& shape : facts.shapes) launches += shape.launches;
  return launches;
}

void merge(KernelFacts& facts, const KernelFacts& more) {
  facts.kernel = more.kernel;
  if (facts.name.empty()) facts.name = more.name;
  if (facts.device.empty()) facts.device = more.device;
  facts.launches += more.launches;
  facts.equal += more.equal;
  facts.unequal += more.unequal;
  facts.strayed += more.strayed;
  for (const AuditedShape& shape : more.shapes) add_shape(facts, shape);
  if (facts.first_day.empty() || more.first_day < facts.first_day) facts.first_day = more.first_day;
  facts.last_day = std::max(facts.last_day, more.last_day);
  for (const SlotEvidence& from : more.slots) {
    SlotEvidence& slot = slot_of(facts, from.parameter_offset);
    slot.overwritten += from.overwritten;
    slot.written += from.written;
    slot.updated += from.updated;
    slot.kept += from.kept;
    slot.same += from.same;
    slot.reached += from.reached;
    slot.guarded += from.guarded;
    slot.led += from.led;
    slot.least_bytes = slot.most_bytes == 0 ? from.least_bytes : std::min(slot.least_bytes, from.least_bytes);
    slot.most_bytes = std::max(slot.most_bytes, from.most_bytes);
  }
}

}  // namespace reprise::facts
