#include "analyzer/code/state.h"

#include <algorithm>

namespace reprise::code {

const RegisterState::Either* RegisterState::find(Register reg) const {
  const auto found = std::find_if(either_.begin(), either_.end(), [reg](const Either& e) { return e.reg == reg; });
  return found == either_.end() ? nullptr : &*found;
}

RegisterState::Either* RegisterState::find(Register reg) {
  return const_cast<Either*>(static_cast<const RegisterState*>(this)->find(reg));
}

void RegisterState::drop(Register reg) {
  std::erase_if(either_, [reg](const Either& e) { return e.reg == reg; });
}

ValueId RegisterState::read(Register reg, Guard guard) const {
  if (!holds(reg)) return ValueTable::kZero;
  const Either* either = guard.always() ? nullptr : find(reg);
  if (either != nullptr && either->predicate == guard.predicate) return guard.negated ? either->no : either->yes;
  return registers_[reg];
}

void RegisterState::write(Register reg, ValueId value, Guard guard) {
  if (!holds(reg)) return;
  if (guard.always()) {
    registers_[reg] = value;
    drop(reg);
    return;
  }
  // A uniform register is the warp's: the threads whose predicate is false see it changed, too.
  if (is_uniform(reg) && guard.predicate < kUniformPredicate) {
    registers_[reg] = values_->join(registers_[reg], value);
    drop(reg);
    return;
  }
  ValueId yes = registers_[reg];
  ValueId no = registers_[reg];
  if (const Either* old = find(reg); old != nullptr && old->predicate == guard.predicate) {
    yes = old->yes;
    no = old->no;
  }
  (guard.negated ? no : yes) = value;
  choose(reg, guard.predicate, yes, no);
}

void RegisterState::choose(Register reg, Predicate predicate, ValueId yes, ValueId no) {
  if (!holds(reg)) return;
  registers_[reg] = values_->join(yes, no);
  if (yes == no) {
    drop(reg);
  } else if (Either* old = find(reg)) {
    *old = {reg, predicate, yes, no};
  } else {
    either_.push_back({reg, predicate, yes, no});
  }
}

void RegisterState::forget(PredicateSet predicates) {
  std::erase_if(either_, [&](const Either& e) { return predicates.has(e.predicate); });
}

RegisterState RegisterState::where(Guard guard) const {
  RegisterState found = *this;
  for (const Either& either : either_) {
    if (either.predicate == guard.predicate) found.registers_[either.reg] = guard.negated ? either.no : either.yes;
  }
  std::erase_if(found.either_, [&](const Either& e) { return e.predicate == guard.predicate; });
  return found;
}

// Where only one side knows of a predicate, the other has one value whatever the predicate is.
bool RegisterState::merge_either(const RegisterState& other, Register reg) {
  const Either* mine = find(reg);
  const Either* theirs = other.find(reg);
  if (mine != nullptr && theirs != nullptr && mine->predicate != theirs->predicate) {
    drop(reg);
    return true;
  }
  const Either a = mine != nullptr ? *mine : Either{reg, theirs->predicate, registers_[reg], registers_[reg]};
  const Either b = theirs != nullptr ? *theirs : Either{reg, a.predicate, other.registers_[reg], other.registers_[reg]};
  const ValueId yes = values_->join(a.yes, b.yes);
  const ValueId no = values_->join(a.no, b.no);
  if (yes == a.yes && no == a.no) return false;
  choose(reg, a.predicate, yes, no);
  return true;
}

bool RegisterState::merge(const RegisterState& other) {
  bool changed = false;
  std::vector<Register> registers;
  for (const Either& either : either_) registers.push_back(either.reg);
  for (const Either& either : other.either_) {
    if (find(either.reg) == nullptr) registers.push_back(either.reg);
  }
  for (const Register reg : registers) changed = merge_either(other, reg) || changed;
  for (size_t reg = 0; reg < registers_.size(); ++reg) {
    const ValueId joined = values_->join(registers_[reg], other.registers_[reg]);
    if (joined == registers_[reg]) continue;
    registers_[reg] = joined;
    changed = true;
  }
  return changed;
}

}  // namespace reprise::code
