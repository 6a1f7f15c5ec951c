#include "analyzer/iteration/false_operands.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kLargestUpperHalf = 0xffff;

bool may_be_two_numbers(uint64_t word) { return word >> 32 != 0 && word >> 32 <= kLargestUpperHalf; }

bool is_small_number(uint64_t word) { return (word & 0xffffffff) < kLargestNumber; }

uint64_t word_at(const trace::Op& op, uint32_t offset) {
  uint64_t word;
  std::memcpy(&word, op.parameters.data() + offset, sizeof word);
  return word;
}

bool has_word(const trace::Op& op, uint32_t offset) { return uint64_t{offset} + 8 <= op.parameters.size(); }

// Of launches of a kernel in one shape: its constants follow from that.
uint64_t shape_of(const trace::Op& op) {
  uint64_t key = op.record.function;
  for (const uint32_t size : op.record.grid) key = trace::hash_mix(key, size);
  for (const uint32_t size : op.record.block) key = trace::hash_mix(key, size);
  return trace::hash_mix(key, op.record.shared_bytes);
}

// Of a word at a place of the parameters, for launches of that key.
uint64_t key_of(uint64_t launches, uint32_t offset, uint64_t word) {
  return trace::hash_mix(trace::hash_mix(launches, offset), word);
}

// What memory there is at a moment of the recording.
class MemoryOverTime {
 public:
  void add(const trace::AllocateRecord& record) {
    ends_[record.address] = record.address + record.size;
    addresses_[record.allocation] = record.address;
  }
  void remove(const trace::FreeRecord& record) {
    const auto found = addresses_.find(record.allocation);
    if (found == addresses_.end()) return;
    ends_.erase(found->second);
    addresses_.erase(found);
  }
  // Where the memory begins that holds the address; 0: none does.
  uint64_t begin_of(uint64_t address) const {
    const auto next = ends_.upper_bound(address);
    if (next == ends_.begin() || address >= std::prev(next)->second) return 0;
    return std::prev(next)->first;
  }

 private:
  std::map<uint64_t, uint64_t> ends_;                 // by address
  std::unordered_map<uint64_t, uint64_t> addresses_;  // by allocation
};

// What the recording says of the words at the places of kernels' parameters.
class Places {
 public:
  explicit Places(const trace::Trace& trace) {
    MemoryOverTime memory;
    for (const trace::Event& event : trace.events) {
      if (const auto* allocate = std::get_if<trace::Allocate>(&event)) memory.add(allocate->record);
      if (const auto* free = std::get_if<trace::Free>(&event)) memory.remove(free->record);
      const auto* op = std::get_if<trace::Op>(&event);
      if (op != nullptr && op->record.op == trace::OpKind::launch) look_at(*op, memory);
    }
  }

  bool is_number(const trace::Op& op, uint32_t at, uint64_t word) const {
    if (!may_be_two_numbers(word)) return false;
    if (without_memory_.count(key_of(op.record.function, at, word)) != 0) return true;
    const uint64_t shape = shape_of(op);
    const auto found = words_.find(key_of(shape, at, word));
    return found != words_.end() && found->second.is_number(word, launches_.at(shape));
  }

 private:
  // What was seen of one word at one place.
  struct Sightings {
    uint32_t count = 0;
    uint64_t begin = 0;      // of the memory that it pointed into first; 0: never into any
    bool nowhere = false;    // it pointed into none once
    bool elsewhere = false;  // it pointed into memory with another begin, too

    bool is_number(uint64_t word, uint32_t launches) const {
      if (count < 2 || 2 * uint64_t{count} <= launches) return false;
      return elsewhere || word % 2 == 1 || (nowhere && begin != word);
    }
  };

  void look_at(const trace::Op& op, const MemoryOverTime& memory) {
    const uint64_t shape = shape_of(op);
    ++launches_[shape];
    for (uint32_t at = 0; has_word(op, at); at += 8) {
      const uint64_t value = word_at(op, at);
      if (!may_be_two_numbers(value)) continue;
      const uint64_t begin = memory.begin_of(value);
      if (begin == 0 && is_small_number(value)) without_memory_.insert(key_of(op.record.function, at, value));
      Sightings& seen = words_[key_of(shape, at, value)];
      ++seen.count;
      seen.nowhere = seen.nowhere || begin == 0;
      seen.elsewhere = seen.elsewhere || (begin != 0 && seen.begin != 0 && begin != seen.begin);
      if (seen.begin == 0) seen.begin = begin;
    }
  }

  std::unordered_set<uint64_t> without_memory_;      // small numbers that pointed nowhere once, by kernel and place
  std::unordered_map<uint64_t, uint32_t> launches_;  // by shape
  std::unordered_map<uint64_t, Sightings> words_;    // by shape, place and word
};

uint64_t signature_of(const trace::Trace& trace, const trace::Op& op, uint32_t named) {
  const trace::TracedFunction* function = trace::find_function(trace, op.record.function);
  const uint64_t name = function == nullptr ? 0 : trace::hash_bytes(function->name.data(), function->name.size());
  return trace::op_signature(op.record.op, name, op.record.grid, op.record.block, op.record.shared_bytes,
                             op.record.size, named);
}

// A signature counts the operands that the parameters name, which the record does not tell from those behind them.
void sign_again(const trace::Trace& trace, uint32_t dropped, trace::Op* op) {
  const auto before = static_cast<uint32_t>(op->accesses.size()) + dropped;
  for (uint32_t named = before; named >= dropped; --named) {
    if (signature_of(trace, *op, named) != op->record.signature) {
      if (named == 0) return;
      continue;
    }
    op->record.signature = signature_of(trace, *op, named - dropped);
    return;
  }
}

}  // namespace

uint64_t drop_false_operands(trace::Trace* trace) {
  const Places places(*trace);
  uint64_t total = 0;
  for (trace::Event& event : trace->events) {
    auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr || op->record.op != trace::OpKind::launch) continue;
    const auto is_false = [&](const trace::AccessRecord& access) {
      const uint32_t at = access.parameter_offset;
      return at != trace::kNoParameter && has_word(*op, at) && places.is_number(*op, at, word_at(*op, at));
    };
    const auto dropped = static_cast<uint32_t>(std::erase_if(op->accesses, is_false));
    if (dropped == 0) continue;
    op->record.access_count = static_cast<uint32_t>(op->accesses.size());
    sign_again(*trace, dropped, op);
    total += dropped;
  }
  return total;
}

}  // namespace reprise::analyzer
