// Symbols: 32-bit words that may be half of an address, and sets of them. A symbol is a base, which is where the 64-bit
// word comes from, and a half. Bases and symbols have numbers, so that sets are bits. Callers: the domain of values;
// the classification of addresses.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace reprise::code {

enum class BaseKind : uint8_t {
  null,       // 0, joined with pointers though it is none
  parameter,  // key: its offset
  computed,   // a parameter word at a computed offset; key: number in Symbols::places
  loaded,     // through an address with this base; key: number of that base, or kUnresolved, kDescriptor
  constants,  // a __constant__ variable's content
  module,     // the address of a variable or function of the module; key: number in Symbols::names
  driver,     // a word of the driver's before the parameters; key: its offset
  stack,      // where local memory is on the stack
  local,      // the window of local memory
  shared,     // the window of shared memory
  heap,       // what malloc returned
  product,    // of matrices
  barrier,    // where threads meet again; key: the instruction
};
inline constexpr uint32_t kUnresolved = 0xffffffff;
inline constexpr uint32_t kDescriptor = 0xfffffffe;

struct Base {
  BaseKind kind = BaseKind::null;
  uint32_t key = 0;

  bool operator==(const Base&) const = default;
  bool operator<(const Base& other) const { return std::tie(kind, key) < std::tie(other.kind, other.key); }
};

// From memory, so that no launch shows what it is.
constexpr bool is_loaded(BaseKind kind) {
  return kind == BaseKind::loaded || kind == BaseKind::constants || kind == BaseKind::product;
}
// Leads to no global memory.
constexpr bool is_outside(BaseKind kind) {
  return kind == BaseKind::stack || kind == BaseKind::local || kind == BaseKind::shared || kind == BaseKind::barrier ||
         kind == BaseKind::null;
}
// The same word wherever it is read in a launch, so that x - x is 0.
constexpr bool is_fixed(BaseKind kind) {
  return kind == BaseKind::parameter || kind == BaseKind::module || kind == BaseKind::driver ||
         kind == BaseKind::stack || kind == BaseKind::local || kind == BaseKind::shared;
}

using SymbolNumber = uint32_t;
inline constexpr SymbolNumber kNullSymbol = 0;

class SymbolSet {
 public:
  SymbolSet() = default;
  explicit SymbolSet(SymbolNumber one) { add(one); }

  void add(SymbolNumber symbol) {
    const size_t word = symbol / 64;
    if (words_.size() <= word) words_.resize(word + 1);
    words_[word] |= uint64_t{1} << symbol % 64;
  }
  void remove(SymbolNumber symbol) {
    if (symbol / 64 >= words_.size()) return;
    words_[symbol / 64] &= ~(uint64_t{1} << symbol % 64);
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }
  bool has(SymbolNumber symbol) const {
    return symbol / 64 < words_.size() && (words_[symbol / 64] >> symbol % 64 & 1) != 0;
  }
  bool empty() const { return words_.empty(); }
  size_t size() const {
    size_t count = 0;
    for (const uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
    return count;
  }
  SymbolSet& operator|=(const SymbolSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  template <typename Use>
  void each(const Use& use) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        use(static_cast<SymbolNumber>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
      }
    }
  }
  bool operator==(const SymbolSet&) const = default;
  size_t hash() const {
    size_t hash = words_.size();
    for (const uint64_t word : words_) hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
    return hash;
  }

 private:
  std::vector<uint64_t> words_;  // the last one is not 0
};

struct Symbol {
  Base base;
  bool upper = false;
};

// A parameter word at a computed offset: base of the address behind the displacement, and the index where it is known.
struct ComputedPlace {
  uint32_t displacement = 0;
  uint32_t index = 0;  // an expression's number; 0: not known

  bool operator==(const ComputedPlace&) const = default;
};

class Symbols {
 public:
  Symbols() { symbols_.emplace_back(); }

  SymbolNumber number(Base base, bool upper);
  const Symbol& of(SymbolNumber number) const { return symbols_[number]; }
  size_t size() const { return symbols_.size(); }

  uint32_t base_number(Base base);
  Base base(uint32_t number) const { return bases_[number]; }
  uint32_t place_number(ComputedPlace place);
  const ComputedPlace& place(uint32_t number) const { return places_[number]; }
  uint32_t name_number(std::string_view name);
  const std::string& name(uint32_t number) const { return names_[number]; }

  // What a load through `base` gives: bases do not nest.
  Base loaded_through(Base base);

 private:
  std::vector<Symbol> symbols_;
  std::vector<Base> bases_;
  std::vector<ComputedPlace> places_;
  std::vector<std::string> names_;
  std::unordered_map<uint64_t, SymbolNumber> numbers_;
  std::unordered_map<uint64_t, uint32_t> base_numbers_;
};

}  // namespace reprise::code
