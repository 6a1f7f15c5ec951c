// Indices that do not mix: what counts calls is no count of ops. An index is made of a number by name alone, and may be
// used as one. Used by all rooms of the analyzer.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/base/ids.h"

namespace reprise::analyzer {

template <typename What>
class TypedIndex {
 public:
  constexpr TypedIndex() = default;
  constexpr explicit TypedIndex(uint32_t number) : number_(number) {}
  template <typename Other>
  explicit TypedIndex(TypedIndex<Other>) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): counts and comparisons are of numbers
  constexpr operator uint32_t() const { return number_; }
  constexpr TypedIndex& operator++() {
    ++number_;
    return *this;
  }
  constexpr TypedIndex operator++(int) { return TypedIndex(number_++); }
  constexpr TypedIndex& operator--() {
    --number_;
    return *this;
  }
  constexpr TypedIndex operator--(int) { return TypedIndex(number_--); }
  constexpr TypedIndex& operator+=(uint32_t count) {
    number_ += count;
    return *this;
  }
  constexpr TypedIndex& operator-=(uint32_t count) {
    number_ -= count;
    return *this;
  }

  template <std::integral Count>
  requires(sizeof(Count) <= sizeof(uint32_t)) friend constexpr TypedIndex operator+(TypedIndex index, Count count) {
    return TypedIndex(index.number_ + static_cast<uint32_t>(count));
  }
  template <std::integral Count>
  requires(sizeof(Count) <= sizeof(uint32_t)) friend constexpr TypedIndex operator-(TypedIndex index, Count count) {
    return TypedIndex(index.number_ - static_cast<uint32_t>(count));
  }

 private:
  uint32_t number_ = 0;
};

// A call of the iteration, or of a recording: allocations, frees and ops, in the program's order.
using CallIndex = TypedIndex<struct IsCall>;
// An op among the iteration's ops alone. Where several iterations follow each other, those of the next one go on
// counting.
using OpIndex = TypedIndex<struct IsOp>;

// A vector with an element for each: no other index is taken for one of its own.
template <typename Key, typename Value>
class Indexed : public std::vector<Value> {
 public:
  using std::vector<Value>::vector;
  using std::vector<Value>::operator[];
  template <typename Other>
  requires(!std::same_as<TypedIndex<Other>, Key>) void operator[](TypedIndex<Other>) const = delete;
};
template <typename Value>
using ByCall = Indexed<CallIndex, Value>;
template <typename Value>
using ByOp = Indexed<OpIndex, Value>;

}  // namespace reprise::analyzer
