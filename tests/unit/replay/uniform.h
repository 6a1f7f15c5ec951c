// Random numbers for the replay's property tests, of the whole range from the first case on: rapidcheck's own grow with
// the case.
#pragma once
#include <rapidcheck.h>

#include <cstddef>
#include <vector>

namespace reprise::replay::testing {

// From `first` up to and without `end`.
template <typename Number>
Number uniform(Number first, Number end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Number>(first, end));
}

// In one of `times` cases on average.
inline bool one_in(int times) { return uniform(0, times) == times - 1; }

template <typename Element>
const Element& one_of(const std::vector<Element>& all) {
  return all[uniform<size_t>(0, all.size())];
}

}  // namespace reprise::replay::testing
