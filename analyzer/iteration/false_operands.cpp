#include "analyzer/iteration/false_operands.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kLargestUpperHalf = 0xffff;

bool may_be_two_numbers(uint64_t word) {
  return (word & 0xffffffff) < kLargestNumber && word >> 32 != 0 && word >> 32 <= kLargestUpperHalf;
}

uint64_t word_at(const trace::Op& op, uint32_t offset) {
  uint64_t word;
  std::memcpy(&word, op.parameters.data() + offset, sizeof word);
  return word;
}

bool has_word(const trace::Op& op, uint32_t offset) { return uint64_t{offset} + 8 <= op.parameters.size(); }

uint64_t key_of(const trace::Op& op, uint32_t offset, uint64_t word) {
  return trace::hash_mix(trace::hash_mix(op.record.function, offset), word);
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
  bool contains(uint64_t address) const {
    const auto next = ends_.upper_bound(address);
    return next != ends_.begin() && address < std::prev(next)->second;
  }

 private:
  std::map<uint64_t, uint64_t> ends_;                 // by address
  std::unordered_map<uint64_t, uint64_t> addresses_;  // by allocation
};

// Places of kernels' parameters, with the words that stood there while no memory was where they point.
std::unordered_set<uint64_t> words_without_memory(const trace::Trace& trace) {
  std::unordered_set<uint64_t> found;
  MemoryOverTime memory;
  for (const trace::Event& event : trace.events) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) memory.add(allocate->record);
    if (const auto* free = std::get_if<trace::Free>(&event)) memory.remove(free->record);
    const auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr || op->record.op != trace::OpKind::launch) continue;
    for (uint32_t at = 0; has_word(*op, at); at += 8) {
      const uint64_t word = word_at(*op, at);
      if (may_be_two_numbers(word) && !memory.contains(word)) found.insert(key_of(*op, at, word));
    }
  }
  return found;
}

uint64_t signature_of(const trace::Trace& trace, const trace::Op& op, uint32_t named) {
  const trace::TracedFunction* function = trace::find_function(trace, op.record.function);
  const uint64_t name = function == nullptr ? 0 : trace::hash_bytes(function->name.data(), function->name.size());
  return trace::op_signature(op.record.op, name, op.record.grid, op.record.block, op.record.shared_bytes,
                             op.record.stream, op.record.size, named);
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
  const std::unordered_set<uint64_t> without_memory = words_without_memory(*trace);
  if (without_memory.empty()) return 0;
  uint64_t total = 0;
  for (trace::Event& event : trace->events) {
    auto* op = std::get_if<trace::Op>(&event);
    if (op == nullptr || op->record.op != trace::OpKind::launch) continue;
    const auto is_false = [&](const trace::AccessRecord& access) {
      const uint32_t at = access.parameter_offset;
      return at != trace::kNoParameter && has_word(*op, at) && may_be_two_numbers(word_at(*op, at)) &&
             without_memory.count(key_of(*op, at, word_at(*op, at))) != 0;
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
