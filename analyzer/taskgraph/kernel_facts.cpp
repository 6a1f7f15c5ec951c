#include "analyzer/taskgraph/kernel_facts.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace reprise::analyzer {
namespace {

// What is known of a trace's kernels, looked up once each.
class TracedFacts {
 public:
  TracedFacts(const trace::Trace& trace, const facts::Store& store) : trace_(trace), store_(store) {
    const auto device = trace.info.find("device.name");
    if (device != trace.info.end()) device_ = device->second;
  }

  // nullptr: nothing is known.
  const facts::KernelFacts* of(const trace::Op* op) {
    if (op == nullptr) return nullptr;
    const uint32_t id = op->record.function;
    const trace::TracedFunction* const function = trace::find_function(trace_, id);
    if (function == nullptr || function->identity == 0) return nullptr;
    const auto [at, fresh] = known_.try_emplace(id);
    if (fresh) {
      if (auto loaded = store_.load(function->identity, device_); loaded.ok()) at->second = std::move(loaded.value());
    }
    return at->second ? &*at->second : nullptr;
  }

 private:
  const trace::Trace& trace_;
  const facts::Store& store_;
  std::string device_;
  std::unordered_map<uint32_t, std::optional<facts::KernelFacts>> known_;
};

// Does the launch touch memory that its parameters do not name, or by another place each time? What was seen of a
// kernel at some places of its operands is not known of all.
bool touches_more(const GraphCall& entry) {
  return std::any_of(entry.call.accesses.begin(), entry.call.accesses.end(), plan::moves) || !entry.foreign.empty() ||
         (entry.call.flags & (trace::kOpOpaque | trace::kOpHostVisible)) != 0;
}

bool is_audited(const facts::KernelFacts& known, const trace::OpRecord& record, const GraphCall& entry,
                const TaskGraph& graph) {
  std::vector<facts::ShapeOperand> operands;
  for (const plan::OpAccess& access : entry.call.accesses) {
    if (access.parameter_offset == trace::kNoParameter) return false;
    operands.push_back({access.parameter_offset, graph.tensors[access.tensor].size});
  }
  const uint64_t shape = facts::shape_of(record.grid, record.block, record.shared_bytes, std::move(operands));
  return facts::audited(known, shape) == facts::Answer::yes;
}

class FactUser {
 public:
  FactUser(const trace::Trace& trace, const facts::Store& store, TaskGraph& graph)
      : facts_(trace, store), graph_(graph), touched_(graph.tensors.size(), false) {}

  void run(const std::vector<const trace::Op*>& ops) {
    for (CallIndex call{0}; call < graph_.calls.size(); ++call) {
      GraphCall& entry = graph_.calls[call];
      if (const facts::KernelFacts* known = facts_.of(ops[call]); known != nullptr) use(*known, entry);
      for (const plan::OpAccess& access : entry.call.accesses) touched_[access.tensor] = true;
    }
  }

 private:
  void use(const facts::KernelFacts& known, GraphCall& entry) {
    if (touches_more(entry)) return;
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

  TracedFacts facts_;
  TaskGraph& graph_;
  std::vector<bool> touched_;  // by tensor
};

}  // namespace

void apply_facts(const trace::Trace& trace, const facts::Store& store, const std::vector<const trace::Op*>& ops,
                 TaskGraph& graph) {
  FactUser(trace, store, graph).run(ops);
}

void mark_audited(const trace::Trace& trace, const facts::Store& store, const std::vector<const trace::Op*>& ops,
                  TaskGraph& graph) {
  TracedFacts facts(trace, store);
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    GraphCall& entry = graph.calls[call];
    if (entry.call.op != trace::OpKind::launch || touches_more(entry)) continue;
    const facts::KernelFacts* const known = facts.of(ops[call]);
    if (known == nullptr || !is_audited(*known, ops[call]->record, entry, graph)) continue;
    entry.call.audited = known->kernel;
  }
}

}  // namespace reprise::analyzer
