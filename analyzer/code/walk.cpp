#include "analyzer/code/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/code/machine.h"

namespace reprise::code {
namespace {

constexpr size_t kMostNodes = 60'000;
constexpr size_t kMostValues = size_t{1} << 20;
constexpr uint64_t kMostWork = 100'000'000;  // instructions
constexpr uint32_t kMostDepth = 8;           // of calls
constexpr Register kReturned = 4;            // where functions of the driver leave what they return
constexpr Register kHome = 20;               // ... and find where to return to

struct DriverFunction {
  const char* name;
  Impurity impurity;
};
constexpr DriverFunction kDriverFunctions[] = {
    {"__assertfail", Impurity::asserts}, {"__assert_fail", Impurity::asserts}, {"vprintf", Impurity::prints},
    {"malloc", Impurity::allocates},     {"free", Impurity::allocates},
};

// A block, as one chain of callers reaches it.
struct Node {
  uint32_t context = 0;
  uint32_t first = 0;

  bool operator<(const Node& other) const { return key() < other.key(); }
  uint64_t key() const { return uint64_t{context} << 32 | first; }
};

struct Context {
  uint32_t caller = 0;
  uint32_t back = 0;  // where it returns to, an instruction
  uint32_t depth = 0;
  uint32_t outermost = 0;
};

class ControlWalk {
 public:
  explicit ControlWalk(KernelMachine& machine) : machine_(machine), contexts_(1) {}

  void run() {
    const auto entry = machine_.listing.function(machine_.kernel.name);
    if (!entry) return machine_.doubt("its code is not there", 0);
    merge({0, *entry}, RegisterState(machine_.values));
    while (!work_.empty() && !machine_.doubted()) {
      const Node node = work_.top().second;
      work_.pop();
      waiting_.erase(node.key());
      run_block(node);
      if (machine_.cells.take_changed()) {
        for (const Node reader : readers_) wake(reader);
      }
      if (states_.size() > kMostNodes || machine_.values.size() > kMostValues || worked_ > kMostWork) {
        machine_.doubt("more than the analysis may take", node.first);
      }
    }
    machine_.final = true;
    std::vector<Node> nodes;
    for (const auto& [key, state] : states_)
      nodes.push_back({static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)});
    std::sort(nodes.begin(), nodes.end());
    for (const Node node : nodes) {
      if (!machine_.doubted()) run_block(node);
    }
  }

 private:
  using Urgency = std::pair<std::pair<uint32_t, uint32_t>, Node>;  // earlier code first
  struct Later {
    bool operator()(const Urgency& a, const Urgency& b) const { return b < a; }
  };

  const Instruction& at(uint32_t number) const { return machine_.listing.code()[number]; }

  void wake(Node node) {
    if (!waiting_.insert(node.key()).second) return;
    const uint32_t outermost = node.context == 0 ? node.first : contexts_[node.context].outermost;
    work_.push({{outermost, node.first}, node});
  }

  void merge(Node node, const RegisterState& state) {
    if (machine_.final) return;
    const auto [found, added] = states_.try_emplace(node.key());
    if (added) {
      found->second = std::make_unique<RegisterState>(state);
      wake(node);
    } else if (found->second->merge(state)) {
      wake(node);
    }
  }

  void run_block(Node node) {
    RegisterState state = *states_[node.key()];
    machine_.looked_into = false;
    for (uint32_t number = node.first; !machine_.doubted(); ++number) {
      const Instruction& instruction = at(number);
      ++worked_;
      if (instruction.row.effect == Effect::beyond) return machine_.doubt("control runs past the end", number);
      if (run_control({node.context, number}, state)) break;
      execute({machine_, state, instruction, number});
      if (machine_.listing.begins_block(number + 1)) {
        merge({node.context, number + 1}, state);
        break;
      }
    }
    if (machine_.looked_into) readers_.insert(node);
  }

  // Whether the instruction is one of control; then its successors have their states.
  bool run_control(Node here, RegisterState& state) {
    const Instruction& i = at(here.first);
    const Effect effect = i.row.effect;
    if (effect != Effect::jump && effect != Effect::exit && effect != Effect::reconverge && effect != Effect::call &&
        effect != Effect::give_back) {
      return false;
    }
    if (!i.row.any && !i.modifiers.within(i.row.allowed)) machine_.doubt("a modifier that is not known", here.first);
    const Node next{here.context, here.first + 1};
    if (i.guard.predicate == kTrue && i.guard.negated) {  // never
      merge(next, state);
      return true;
    }
    switch (effect) {
      case Effect::jump:
        jump(here, next, state);
        break;
      case Effect::exit:
        if (!i.guard.always()) merge(next, state.where({i.guard.predicate, !i.guard.negated}));
        break;
      case Effect::reconverge:
        reconverge(here, next, state);
        break;
      default:
        if (!i.guard.always()) merge(next, state);
        effect == Effect::call ? call(here, next, state) : give_back(here, state);
    }
    return true;
  }

  void jump(Node here, Node next, RegisterState& state) {
    const Instruction& i = at(here.first);
    const bool meets = i.row.opcode == Opcode::WARPSYNC;
    if (meets && i.targets.empty()) return merge(next, state);
    std::vector<uint32_t> targets;
    for (const std::string_view name : i.targets) {
      const auto target = machine_.listing.label(name);
      if (!target) return machine_.doubt("a jump that leads nowhere", here.first);
      targets.push_back(*target);
    }
    if (targets.empty()) return machine_.doubt("a jump whose targets are not listed", here.first);
    // Only one that its guard alone decides says what the predicate is.
    const bool decides = i.row.opcode == Opcode::BRA && i.operands.empty() && !i.guard.always();
    const RegisterState taken = decides ? state.where(i.guard) : state;
    for (const uint32_t target : targets) merge({here.context, target}, taken);
    const bool computed = i.row.opcode == Opcode::BRX || i.row.opcode == Opcode::BRXU;
    if (decides) {
      merge(next, state.where({i.guard.predicate, !i.guard.negated}));
    } else if (!i.guard.always() || meets || (!computed && !i.operands.empty())) {
      merge(next, state);
    }
  }

  // To where the barrier was set up to lead.
  void reconverge(Node here, Node next, RegisterState& state) {
    const Instruction& i = at(here.first);
    merge(next, state);
    if (i.operands.empty() || !i.operands.back().is(OperandKind::registers)) {
      return machine_.doubt("a barrier of an unknown form", here.first);
    }
    const ValueId value = state.read(i.operands.back().reg, i.guard);
    const Value barrier = machine_.values[value];
    bool good = !barrier.number && barrier.sums.empty() && barrier.taint.empty();
    barrier.sole.each([&](SymbolNumber number) {
      const Base base = machine_.values.symbols.of(number).base;
      good = good && base.kind == BaseKind::barrier;
      if (good) merge({here.context, base.key}, state);
    });
    if (!good || (machine_.final && value == ValueTable::kNothing))
      machine_.doubt("a barrier that is not known", here.first);
  }

  // The function that a call leads to; none: not known yet.
  std::optional<std::string> callee(Node here, RegisterState& state) {
    const Instruction& i = at(here.first);
    if (i.operands.empty()) {
      if (i.targets.size() == 1) return std::string(i.targets[0]);
      machine_.doubt("a call that leads nowhere", here.first);
      return std::nullopt;
    }
    const ValueId id = value_of({machine_, state, i, here.first}, i.operands[0]);
    if (id == ValueTable::kNothing && !machine_.final) return std::nullopt;
    const Value& value = machine_.values[id];
    const bool one = value.sole.size() == 1 && !value.number && value.alone() && value.exactness == Exactness::number;
    std::optional<std::string> name;
    value.sole.each([&](SymbolNumber number) {
      const Base base = machine_.values.symbols.of(number).base;
      if (one && value.exact == 0 && base.kind == BaseKind::module) name = machine_.values.symbols.name(base.key);
    });
    if (!name) machine_.doubt("a call of a computed address", here.first);
    return name;
  }

  void call(Node here, Node next, RegisterState& state) {
    const auto name = callee(here, state);
    if (!name || machine_.doubted()) return;
    if (const auto target = machine_.listing.label(*name)) {
      const Context& context = contexts_[here.context];
      if (context.depth >= kMostDepth) return machine_.doubt("calls that are nested too deeply", here.first);
      return merge({context_of(here, next.first), *target}, state);
    }
    const auto known = std::find_if(std::begin(kDriverFunctions), std::end(kDriverFunctions),
                                    [&](const DriverFunction& function) { return *name == function.name; });
    if (known == std::end(kDriverFunctions))
      return machine_.doubt("a call of a function that is not there", here.first);
    machine_.flag(known->impurity, here.first);
    call_driver(here, next, *name == "malloc", state);
  }

  void call_driver(Node here, Node next, bool allocates, RegisterState& state) {
    RegisterState after = state;
    for (Register half = 0; half < 2; ++half) {
      const ValueId heap = machine_.values.symbol({BaseKind::heap, 0}, half != 0);
      after.write(static_cast<Register>(kReturned + half), allocates ? heap : ValueTable::kNumber);
    }
    const auto home = machine_.values.constant_of(state.read(kHome));
    if (!home) return merge(next, after);
    const auto back = machine_.listing.at(at(here.first).section, *home);
    if (!back) return machine_.doubt("a call that returns nowhere", here.first);
    merge({here.context, *back}, after);
  }

  void give_back(Node here, RegisterState& state) {
    const Instruction& i = at(here.first);
    const Context context = contexts_[here.context];
    if (context.depth == 0) return machine_.doubt("a return without a call", here.first);
    if (i.operands.empty()) return machine_.doubt("a return of an unknown form", here.first);
    const ValueId value = value_of({machine_, state, i, here.first}, i.operands[0]);
    if (value == ValueTable::kNothing && !machine_.final) return;
    const auto offset = machine_.values.constant_of(value);
    const auto back = offset ? machine_.listing.at(at(context.back).section, *offset) : std::nullopt;
    if (!back) return machine_.doubt("a return to a computed address", here.first);
    merge({context.caller, *back}, state);
  }

  uint32_t context_of(Node here, uint32_t back) {
    const auto [found, added] =
        numbers_.emplace(std::pair(here.context, back), static_cast<uint32_t>(contexts_.size()));
    if (added) {
      const Context caller = contexts_[here.context];
      contexts_.push_back({here.context, back, caller.depth + 1, caller.depth == 0 ? back : caller.outermost});
    }
    return found->second;
  }

  KernelMachine& machine_;
  std::vector<Context> contexts_;  // the first is the kernel itself
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers_;
  std::unordered_map<uint64_t, std::unique_ptr<RegisterState>> states_;
  std::priority_queue<Urgency, std::vector<Urgency>, Later> work_;
  std::set<uint64_t> waiting_;
  std::set<Node> readers_;
  uint64_t worked_ = 0;
};

}  // namespace

void walk(KernelMachine& machine) { ControlWalk(machine).run(); }

}  // namespace reprise::code
