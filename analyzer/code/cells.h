// Memory that is not global: what may lie in shared memory, and on the stack. Shared memory is two cells, words at even
// and at odd places; the stack is one a place where places are known. Nothing is ever overwritten, so the order of
// threads does not matter. Callers: the interpreter.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/code/domain/value.h"

namespace reprise::code {

enum class Space : uint8_t { shared, local };

class Cells {
 public:
  explicit Cells(ValueTable& values) : values_(values) {}

  // Words from `place` on, where it is known. `whole`: not bytes of words only.
  void store(Space space, std::span<const ValueId> words, bool whole, std::optional<uint32_t> place = {});
  std::vector<ValueId> load(Space space, uint32_t count, std::optional<uint32_t> place = {}) const;
  // All that a space may hold.
  ValueId content(Space space) const;
  // Whether anything came since the last question.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  using Key = std::pair<Space, int64_t>;  // a place, or kEven, kOdd: somewhere
  static constexpr int64_t kEven = -2;
  static constexpr int64_t kOdd = -1;

  void put(Key key, ValueId value);
  ValueId at(Key key) const;

  ValueTable& values_;
  std::map<Key, ValueId> cells_;
  bool changed_ = false;
};

}  // namespace reprise::code
