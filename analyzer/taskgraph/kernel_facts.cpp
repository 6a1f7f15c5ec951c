#include "analyzer/taskgraph/kernel_facts.h"

#include <optional>
#include <unordered_map>

namespace reprise::analyzer {
namespace {

class FactUser {
 public:
  FactUser(const trace::Trace& trace, const facts::Store& store, TaskGraph& graph)
      : trace_(trace), store_(store), graph_(graph), touched_(graph.tensors.size(), false) {
    const auto device = trace.info.find("device.name");
    if (device != trace.info.end()) device_ = device->second;
  }

  void run(const std::vector<uint32_t>& functions) {
    for (uint32_t call = 0; call < graph_.calls.size(); ++call) {
      GraphCall& entry = graph_.calls[call];
      if (const facts::KernelFacts* known = facts_of(functions[call]); known != nullptr) use(*known, entry);
      for (const plan::OpAccess& access : entry.call.accesses) touched_[access.tensor] = true;
    }
  }

 private:
  const facts::KernelFacts* facts_of(uint32_t id) {
    const trace::TracedFunction* const function = trace::find_function(trace_, id);
    if (function == nullptr || function->identity == 0) return nullptr;
    const auto [at, fresh] = known_.try_emplace(id);
    if (fresh) {
      if (auto loaded = store_.load(function->identity, device_); loaded.ok()) at->second = std::move(loaded.value());
    }
    return at->second ? &*at->second : nullptr;
  }

  void use(const facts::KernelFacts& known, GraphCall& entry) {
    if (!entry.foreign.empty() || (entry.call.flags & (trace::kOpOpaque | trace::kOpHostVisible)) != 0) return;
    std::vector<uint32_t> modes;
    for (const plan::OpAccess& access : entry.call.accesses) modes.push_back(mode_of(known, access));
    for (size_t i = 0; i < modes.size(); ++i) entry.call.accesses[i].mode = together(entry, modes, i);
    entry.known = true;
    entry.call.pure = facts::pure(known) == facts::Answer::yes;
  }

  uint32_t mode_of(const facts::KernelFacts& known, const plan::OpAccess& access) const {
    if (access.parameter_offset == trace::kNoParameter) return access.mode;
    if (facts::writes(known, access.parameter_offset) == facts::Answer::no) {
      return trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged;
    }
    const bool first = !is_persistent(graph_.tensors[access.tensor]) && !touched_[access.tensor];
    const bool overwrites = facts::reads(known, access.parameter_offset) == facts::Answer::no;
    return first && overwrites ? uint32_t{trace::kAccessWrite} : access.mode;
  }

  // Of a tensor that the launch names several times: what it does by all of these names.
  static uint32_t together(const GraphCall& entry, const std::vector<uint32_t>& modes, size_t which) {
    uint32_t mode = 0;
    bool changed = false;
    for (size_t i = 0; i < modes.size(); ++i) {
      if (entry.call.accesses[i].tensor != entry.call.accesses[which].tensor) continue;
      mode |= modes[i];
      changed = changed || (modes[i] & (trace::kAccessWrite | trace::kAccessUnchanged)) == trace::kAccessWrite;
    }
    return changed ? mode & ~uint32_t{trace::kAccessUnchanged} : mode;
  }

  const trace::Trace& trace_;
  const facts::Store& store_;
  TaskGraph& graph_;
  std::string device_;
  std::vector<bool> touched_;  // by tensor
  std::unordered_map<uint32_t, std::optional<facts::KernelFacts>> known_;
};

}  // namespace

void apply_facts(const trace::Trace& trace, const facts::Store& store, const std::vector<uint32_t>& functions,
                 TaskGraph& graph) {
  FactUser(trace, store, graph).run(functions);
}

}  // namespace reprise::analyzer
