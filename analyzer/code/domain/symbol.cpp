#include "analyzer/code/domain/symbol.h"

#include <algorithm>

namespace reprise::code {
namespace {

uint64_t key_of(Base base, bool upper) {
  return uint64_t{base.key} << 16 | static_cast<uint64_t>(base.kind) << 1 | uint64_t{upper};
}

template <typename T, typename Like>
uint32_t number_in(std::vector<T>& all, const Like& one) {
  const auto found = std::find(all.begin(), all.end(), one);
  const auto number = static_cast<uint32_t>(found - all.begin());
  if (found == all.end()) all.emplace_back(one);
  return number;
}

}  // namespace

SymbolNumber Symbols::number(Base base, bool upper) {
  const auto [found, added] = numbers_.emplace(key_of(base, upper), static_cast<SymbolNumber>(symbols_.size()));
  if (added) symbols_.push_back({base, upper});
  return found->second;
}

uint32_t Symbols::base_number(Base base) {
  const auto [found, added] = base_numbers_.emplace(key_of(base, false), static_cast<uint32_t>(bases_.size()));
  if (added) bases_.push_back(base);
  return found->second;
}

uint32_t Symbols::place_number(ComputedPlace place) { return number_in(places_, place); }

uint32_t Symbols::name_number(std::string_view name) { return number_in(names_, name); }

Base Symbols::loaded_through(Base base) {
  return base.kind == BaseKind::loaded ? base : Base{BaseKind::loaded, base_number(base)};
}

}  // namespace reprise::code
