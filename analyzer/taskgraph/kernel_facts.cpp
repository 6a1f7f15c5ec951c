#include "analyzer/taskgraph/kernel_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace reprise::analyzer {
namespace {

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

// What is known of one launch.
struct Known {
  const facts::KernelFacts* shown = nullptr;
  std::optional<code::Operands> proven;
  bool repeats = false;  // by its code

  // On doubt both answer no.
  bool leaves_alone(uint32_t word) const {
    if (proven) return !proven->written.contains(word);
    return shown != nullptr && facts::writes(*shown, word) == facts::Answer::no;
  }
  bool needs_nothing_of(uint32_t word) const {
    if (proven && !proven->read.contains(word)) return true;
    return shown != nullptr && facts::reads(*shown, word) == facts::Answer::no;
  }
  bool pure() const {
    const facts::Answer answer = shown == nullptr ? facts::Answer::unknown : facts::pure(*shown);
    return answer == facts::Answer::yes || (answer == facts::Answer::unknown && repeats);
  }
};

class FactUser {
 public:
  FactUser(KernelKnowledge& knowledge, bool order_by_proof, TaskGraph& graph)
      : knowledge_(knowledge), order_by_proof_(order_by_proof), graph_(graph), touched_(graph.tensors.size(), false) {}

  void run(const std::vector<const trace::Op*>& ops) {
    for (CallIndex call{0}; call < graph_.calls.size(); ++call) {
      GraphCall& entry = graph_.calls[call];
      if (ops[call] != nullptr) {
        const Known all = known(*ops[call]);
        if (all.proven) leave_variables(*ops[call], entry);
        if (!touches_more(entry)) use(all, entry);
      }
      for (const plan::OpAccess& access : entry.call.accesses) touched_[access.tensor] = true;
    }
  }

 private:
  Known known(const trace::Op& op) {
    Known known{knowledge_.shown(op), knowledge_.proven(op), false};
    const code::CodeFacts* const code = known.proven ? knowledge_.code(op) : nullptr;
    known.repeats = code != nullptr && code->repeats();
    return known;
  }

  // A launch counts as one that uses its module's variables, until its code says otherwise.
  void leave_variables(const trace::Op& op, GraphCall& entry) {
    const auto variables = std::count_if(op.accesses.begin(), op.accesses.end(),
                                         [&](const auto& access) { return knowledge_.is_variable(access); });
    const bool alone = entry.foreign.size() == static_cast<size_t>(variables);
    if (alone && variables != 0 && !knowledge_.uses_variables(op)) entry.foreign.clear();
  }

  void use(const Known& known, GraphCall& entry) {
    if (known.shown == nullptr && !known.proven) return;
    std::vector<uint32_t> modes;
    for (const plan::OpAccess& access : entry.call.accesses) modes.push_back(mode_of(known, access));
    for (size_t i = 0; i < modes.size(); ++i) entry.call.accesses[i].mode = together(entry, modes, i);
    entry.known = true;
    entry.call.pure = known.pure();
  }

  uint32_t mode_of(const Known& known, const plan::OpAccess& access) const {
    if (access.parameter_offset == trace::kNoParameter) return access.mode;
    if (known.leaves_alone(access.parameter_offset)) {
      if (order_by_proof_ && known.proven) return trace::kAccessRead;
      return trace::kAccessRead | trace::kAccessWrite | trace::kAccessUnchanged;
    }
    const bool first = !is_persistent(graph_.tensors[access.tensor]) && !touched_[access.tensor];
    return first && known.needs_nothing_of(access.parameter_offset) ? uint32_t{trace::kAccessWrite} : access.mode;
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

  KernelKnowledge& knowledge_;
  const bool order_by_proof_;
  TaskGraph& graph_;
  std::vector<bool> touched_;  // by tensor
};

}  // namespace

void apply_facts(KernelKnowledge& knowledge, const std::vector<const trace::Op*>& ops, bool order_by_proof,
                 TaskGraph& graph) {
  FactUser(knowledge, order_by_proof, graph).run(ops);
}

void mark_complete(KernelKnowledge& knowledge, const std::vector<const trace::Op*>& ops, plan::Safety safety,
                   TaskGraph& graph) {
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    GraphCall& entry = graph.calls[call];
    if (entry.call.op != trace::OpKind::launch || ops[call] == nullptr) continue;
    const trace::Op& op = *ops[call];
    if (const std::optional<code::Operands> proven = knowledge.proven(op)) {
      const trace::TracedFunction* const function = trace::find_function(knowledge.trace(), op.record.function);
      if (function == nullptr || function->identity == 0) continue;
      entry.call.audited = function->identity;
      entry.call.null_words.assign(proven->null.begin(), proven->null.end());
      entry.call.flags |= plan::kCallProven;
      continue;
    }
    const facts::KernelFacts* const shown = safety == plan::Safety::audited ? knowledge.shown(op) : nullptr;
    if (shown == nullptr || touches_more(entry) || !is_audited(*shown, op.record, entry, graph)) continue;
    entry.call.audited = shown->kernel;
  }
}

}  // namespace reprise::analyzer
