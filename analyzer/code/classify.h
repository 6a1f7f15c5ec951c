// What an address says: which words it may be based on, and whether the launch decides it. Callers: analyse().
#pragma once
#include <set>

#include "analyzer/code/domain/value.h"
#include "analyzer/code/facts.h"

namespace reprise::code {

struct AddressClass {
  Grade grade = Grade::hidden;
  std::set<std::set<Base>> choices;  // of each the launch has to show one as the address
  std::set<Base> numbers;            // words that it has to show to be no addresses
  bool derived = false;              // computed of words in a way that may change which address they are
};

AddressClass classify(const ValueTable& values, ValueId low, ValueId high);

}  // namespace reprise::code
