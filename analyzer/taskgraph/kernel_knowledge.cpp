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

uint64_t word_at(const trace::Op& op, uint32_t at) {
  uint64_t word = 0;
  if (uint64_t{at} + kWordBytes <= op.parameters.size()) std::memcpy(&word, op.parameters.data() + at, kWordBytes);
  return word;
}

code::Operands declared(const trace::Op& op) {
  code::Operands operands;
  for (const trace::AccessRecord& access : op.accesses) {
    if (access.parameter_offset == trace::kNoParameter) continue;
    if ((access.mode & trace::kAccessRead) != 0) operands.read.insert(access.parameter_offset);
    if ((access.mode & trace::kAccessWrite) != 0) operands.written.insert(access.parameter_offset);
  }
  return operands;
}

}  // namespace

KernelKnowledge::KernelKnowledge(const trace::Trace& trace, const facts::Store& store, bool use_code)
    : trace_(trace), store_(store), code_store_(store.folder()), use_code_(use_code) {
  const auto device = trace.info.find("device.name");
  if (device != trace.info.end()) device_ = device->second;
  for (const trace::Event& event : trace.events) {
    const auto* const allocate = std::get_if<trace::Allocate>(&event);
    if (allocate == nullptr) continue;
    const trace::AllocateRecord& record = allocate->record;
    const bool stays = record.origin == trace::Origin::global || record.origin == trace::Origin::host ||
                       record.origin == trace::Origin::managed;
    (stays ? staying_ : moving_).insert(record.allocation);
    if (record.address != 0) add_range(ranges_, record.address, record.address + record.size);
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
  std::set<uint32_t> named;
  for (const trace::AccessRecord& access : op.accesses) {
    const bool is_named = access.parameter_offset != trace::kNoParameter;
    if (!is_named && moving_.contains(access.allocation)) return std::nullopt;
    if (is_named) named.insert(access.parameter_offset);
  }
  std::optional<code::Operands> operands = operands_of(op);
  const auto is_named = [&](uint32_t word) { return named.contains(word); };
  if (!operands || !std::all_of(operands->read.begin(), operands->read.end(), is_named) ||
      !std::all_of(operands->written.begin(), operands->written.end(), is_named)) {
    return std::nullopt;
  }
  return contradicts(op, *operands) ? std::nullopt : operands;
}

bool KernelKnowledge::uses_variables(const trace::Op& op) {
  const code::CodeFacts* const facts = code(op);
  if (facts == nullptr || !facts->known()) return true;
  const auto is_variable = [](const code::Base& base) {
    return base.kind == code::BaseKind::module || base.kind == code::BaseKind::driver;
  };
  return std::any_of(facts->sites.begin(), facts->sites.end(), [&](const auto& entry) {
    const code::Site& site = entry.first;
    return std::any_of(site.choices.begin(), site.choices.end(), [&](const std::set<code::Base>& choice) {
      return std::any_of(choice.begin(), choice.end(), is_variable);
    });
  });
}

bool KernelKnowledge::is_variable(const trace::AccessRecord& access) const {
  return access.parameter_offset == trace::kNoParameter && !moving_.contains(access.allocation) &&
         !staying_.contains(access.allocation);
}

std::optional<code::Operands> KernelKnowledge::operands_of(const trace::Op& op) {
  if ((op.record.header.flags & trace::kOpDeclared) != 0) return declared(op);
  const code::CodeFacts* const facts = code(op);
  if (facts == nullptr || op.parameters.empty()) return std::nullopt;
  return code::operands_of(*facts, words_of(op));
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

// The parts of known structures that the launch leaves unset, by PyTorch's sources: what stands there is no address. A
// live launch with other words in use names others, and is not the plan's.
structures::UnsetParts KernelKnowledge::unset_parts(const trace::Op& op) {
  const trace::TracedFunction* const function = trace::find_function(trace_, op.record.function);
  if (function == nullptr || !function->parameters_known) return {};
  const auto [known, fresh] = structures_.try_emplace(function->id);
  const std::vector<trace::ParameterLayout>& layout = function->parameters;
  if (fresh) {
    known->second = structures::recognize(function->name.c_str(), layout.data(), static_cast<uint32_t>(layout.size()));
  }
  std::set<uint64_t> addresses;
  for (const trace::AccessRecord& access : op.accesses) addresses.insert(word_at(op, access.parameter_offset));
  const auto is_address = [](void* user, uint64_t word) {
    return static_cast<const std::set<uint64_t>*>(user)->contains(word);
  };
  return structures::unset_parts(known->second, op.parameters.data(), static_cast<uint32_t>(op.parameters.size()),
                                 {op.record.grid[0], op.record.grid[1]}, is_address, &addresses);
}

// A word that looks like an address though no access of the recording says so is taken for one, too. The parameters are
// kept from the resolver: what it would take from their numbers no plan compares with the live launch's.
code::LaunchWords KernelKnowledge::words_of(const trace::Op& op) {
  code::LaunchWords words;
  for (const trace::AccessRecord& access : op.accesses) {
    if (access.parameter_offset != trace::kNoParameter) words.live.insert(access.parameter_offset);
  }
  const structures::UnsetParts unset = unset_parts(op);
  for (uint32_t at = 0; at + kWordBytes <= op.parameters.size(); at += kWordBytes) {
    const uint64_t word = word_at(op, at);
    if (word == 0) words.null.insert(at);
    if (!unset.holds(at) && was_allocated(word)) words.live.insert(at);
  }
  std::copy(std::begin(op.record.grid), std::end(op.record.grid), std::begin(words.grid));
  return words;
}

}  // namespace reprise::analyzer
