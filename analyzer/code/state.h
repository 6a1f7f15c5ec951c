// What is known of all registers at a point of a kernel. Values that depend on a predicate are kept apart, {P0: a, !P0:
// b}, as long as the predicate is not set again: compilers guard both the making and the use of a pointer. Callers: the
// interpreter; the walk, which merges states where paths meet.
#pragma once
#include <array>
#include <vector>

#include "analyzer/code/domain/value.h"
#include "analyzer/code/listing/listing.h"

namespace reprise::code {

// Predicates by number, all of a thread's, or none.
struct PredicateSet {
  uint16_t bits = 0;

  void add(Predicate predicate) {
    if (predicate == kAllPredicates) bits |= 0xff;
    if (predicate < 16) bits = static_cast<uint16_t>(bits | 1U << predicate);
  }
  bool has(Predicate predicate) const { return (bits >> predicate & 1) != 0; }
};

class RegisterState {
 public:
  explicit RegisterState(ValueTable& values) : values_(&values) { registers_.fill(ValueTable::kNothing); }

  // As an instruction with this guard reads it.
  ValueId read(Register reg, Guard guard = {}) const;
  void write(Register reg, ValueId value, Guard guard = {});
  // `yes` where the predicate is true.
  void choose(Register reg, Predicate predicate, ValueId yes, ValueId no);
  // These predicates have other values from here on.
  void forget(PredicateSet predicates);
  // What is known where the guard holds.
  RegisterState where(Guard guard) const;
  // Takes in what comes on another path; whether that was news.
  bool merge(const RegisterState& other);

 private:
  struct Either {
    Register reg;
    Predicate predicate;
    ValueId yes;
    ValueId no;
  };

  Either* find(Register reg);
  const Either* find(Register reg) const;
  void drop(Register reg);
  bool merge_either(const RegisterState& other, Register reg);

  ValueTable* values_;
  std::array<ValueId, kRegisters> registers_{};
  std::vector<Either> either_;
};

}  // namespace reprise::code
