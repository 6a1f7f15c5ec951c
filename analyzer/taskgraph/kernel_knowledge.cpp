#include "analyzer/taskgraph/kernel_knowledge.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace reprise::analyzer {
namespace {

constexpr uint32_t kWordBytes = 8;

template <typename Facts, typename Load>
const Facts* look_up(std::unordered_map<uint64_t, std::optional<Facts>>& known, uint64_t identity, const Load& load) {
  if (identity == 0) return nullptr;
  const auto [at, fresh] = known.try_emplace(identity);
  if (fresh) {
    if (auto loaded = load(identity); loaded.ok()) at->second = std::move(loaded.value());
  }
  return at->second ? &*at->second : nullptr;
}

void add_range(std::map<uint64_t, uint64_t>& ranges, uint64_t begin, uint64_t end) {
  auto at = ranges.upper_bound(begin);
  if (at != ranges.begin() && std::prev(at)->second >= begin) --at;
  while (at != ranges.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges.erase(at);
  }
  ranges.emplace(begin, end);
}

}  // namespace

KernelKnowledge::KernelKnowledge(const trace::Trace& trace, const facts::Store& store, bool use_code)
    : trace_(trace), store_(store), code_store_(store.folder()), use_code_(use_code) {
  const auto device = trace.info.find("device.name");
  if (device != trace.info.end()) device_ = device->second;
  for (const trace::Event& event : trace.events) {
    const auto* const allocate = std::get_if<trace::Allocate>(&event);
    if (allocate == nullptr || allocate->record.address == 0) continue;
    add_range(ranges_, allocate->record.address, allocate->record.address + allocate->record.size);
  }
}

const facts::KernelFacts* KernelKnowledge::shown(const trace::Op& op) {
  return look_up(shown_, identity_of(op), [this](uint64_t identity) { return store_.load(identity, device_); });
}

const code::CodeFacts* KernelKnowledge::code(const trace::Op& op) {
  if (!use_code_) return nullptr;
  return look_up(code_, identity_of(op), [this](uint64_t identity) { return code_store_.load(identity); });
}

std::optional<code::Operands> KernelKnowledge::proven(const trace::Op& op) {
  if ((op.record.header.flags & trace::kOpOpaque) != 0) return std::nullopt;
  const code::CodeFacts* const facts = code(op);
  if (facts == nullptr || op.parameters.empty()) return std::nullopt;
  std::set<uint32_t> named;
  for (const trace::AccessRecord& access : op.accesses) {
    if (access.parameter_offset == trace::kNoParameter) return std::nullopt;
    named.insert(access.parameter_offset);
  }
  std::optional<code::Operands> operands = code::operands_of(*facts, words_of(op));
  const auto is_named = [&](uint32_t word) { return named.contains(word); };
  if (!operands || !std::all_of(operands->read.begin(), operands->read.end(), is_named) ||
      !std::all_of(operands->written.begin(), operands->written.end(), is_named)) {
    return std::nullopt;
  }
  return contradicts(op, *operands) ? std::nullopt : operands;
}

// What launches showed is never wrong: then the proof is, and nothing follows from it.
bool KernelKnowledge::contradicts(const trace::Op& op, const code::Operands& operands) {
  const facts::KernelFacts* const seen = shown(op);
  if (seen == nullptr) return false;
  return seen->strayed != 0 ||
         std::any_of(seen->slots.begin(), seen->slots.end(), [&](const facts::SlotEvidence& slot) {
           const bool changed = slot.overwritten != 0 || slot.written != 0 || slot.updated != 0;
           return changed && !operands.written.contains(slot.parameter_offset);
         });
}

uint64_t KernelKnowledge::identity_of(const trace::Op& op) const {
  const trace::TracedFunction* const function = trace::find_function(trace_, op.record.function);
  return function == nullptr ? 0 : function->identity;
}

bool KernelKnowledge::was_allocated(uint64_t address) const {
  const auto behind = ranges_.upper_bound(address);
  return behind != ranges_.begin() && address < std::prev(behind)->second;
}

// A word that looks like an address though no access of the recording says so is taken for one, too. The parameters are
// kept from the resolver: what it would take from their numbers no plan compares with the live launch's.
code::LaunchWords KernelKnowledge::words_of(const trace::Op& op) const {
  code::LaunchWords words;
  for (const trace::AccessRecord& access : op.accesses) words.live.insert(access.parameter_offset);
  for (uint32_t at = 0; at + kWordBytes <= op.parameters.size(); at += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, op.parameters.data() + at, kWordBytes);
    if (word == 0) words.null.insert(at);
    if (was_allocated(word)) words.live.insert(at);
  }
  words.of_all = true;
  std::copy(std::begin(op.record.grid), std::end(op.record.grid), std::begin(words.grid));
  return words;
}

}  // namespace reprise::analyzer
