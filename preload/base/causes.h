// What the preloaded library says on stderr, and to the run log: a cause, a row of causes.def, and the values that its
// sentence has holes for: say<Cause::budget_raised>(asked, needed, why). Whether these are as many as the row has, and
// of its types, is checked when the call is compiled. Callers: every part of the victim process, from its first call
// on.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace reprise {

enum class LogLevel : int { warn = 0, info = 1, debug = 2, part = 3 };  // `part`: of another cause's sentence

// Set once by the configuration, before any other thread of ours runs. The default says warnings only.
void set_log_level(LogLevel level) noexcept;

enum class Cause : uint16_t {
#define CAUSE(id, severity, page, sentence) id,
#include "preload/base/causes.def"
#undef CAUSE
};

struct CauseRow {
  const char* id;
  LogLevel severity;
  std::string_view sentence;
};

inline constexpr CauseRow kCauses[] = {
#define CAUSE(id, severity, page, sentence) {#id, LogLevel::severity, sentence},
#include "preload/base/causes.def"
#undef CAUSE
};

constexpr const CauseRow& row_of(Cause cause) noexcept { return kCauses[static_cast<size_t>(cause)]; }

// What a hole stands for, and how that is shown: causes.def describes them.
enum class Unit : uint8_t { text, count, exact_bytes, bytes, mebibytes, ns, seconds, percent, unknown };

// The words up to a hole, and the hole; without a name: the words behind the last one.
struct Piece {
  std::string_view words;
  std::string_view name;
  Unit unit = Unit::text;
};

constexpr Unit unit_of(std::string_view hole) noexcept {
  constexpr std::string_view kWords[] = {"", "count", "exact_bytes", "bytes", "mebibytes", "ns", "seconds", "percent"};
  const size_t colon = hole.find(':');
  const std::string_view word = colon == std::string_view::npos ? std::string_view() : hole.substr(colon + 1);
  for (size_t i = 0; i < std::size(kWords); ++i) {
    if (word == kWords[i]) return static_cast<Unit>(i);
  }
  return Unit::unknown;
}

constexpr Piece take_piece(std::string_view* rest) noexcept {
  const std::string_view all = *rest;
  const size_t open = all.find('{');
  const size_t close = open == std::string_view::npos ? open : all.find('}', open);
  *rest = close == std::string_view::npos ? std::string_view() : all.substr(close + 1);
  if (close == std::string_view::npos) return {all, {}, Unit::text};
  const std::string_view hole = all.substr(open + 1, close - open - 1);
  return {all.substr(0, open), hole.substr(0, hole.find(':')), unit_of(hole)};
}

constexpr size_t holes_of(std::string_view sentence) noexcept {
  size_t count = 0;
  while (!take_piece(&sentence).name.empty()) ++count;
  return count;
}

// What goes into a hole; texts are those of the caller.
struct CauseValue {
  explicit CauseValue(const char* value) noexcept : text(value) {}
  explicit CauseValue(const std::string& value) noexcept : text(value.c_str()) {}
  explicit CauseValue(double value) noexcept : share(value) {}
  template <typename Number>
  explicit CauseValue(const Number& value) noexcept requires(std::is_integral_v<Number> || std::is_enum_v<Number>)
      : number(static_cast<uint64_t>(value)) {}

  const char* text = nullptr;
  uint64_t number = 0;
  double share = 0;
};

template <typename Value>
constexpr bool has_unit(Unit unit) noexcept {
  if (unit == Unit::text) return std::is_convertible_v<const Value&, const char*> || std::is_same_v<Value, std::string>;
  if (unit == Unit::percent) return std::is_floating_point_v<Value>;
  return unit != Unit::unknown && !std::is_same_v<Value, bool> && (std::is_integral_v<Value> || std::is_enum_v<Value>);
}

template <typename... Values>
constexpr bool have_units(std::string_view sentence) noexcept {
  return (has_unit<Values>(take_piece(&sentence).unit) && ...);
}

// What the listener gets for each warning on stderr, so that the run log has it. `text` has no prefix.
struct Said {
  const CauseRow& row;
  std::span<const CauseValue> values;
  const char* text;
};
using LogListener = void (*)(const Said& said) noexcept;
void set_log_listener(LogListener listener) noexcept;

// The sentence with its values.
std::string text_of(const CauseRow& row, std::span<const CauseValue> values);

// The name of a number in the run log: that of the hole, and of the unit if it has one. Empty: it is no number.
std::string key_of(const Piece& hole);

void say_at(LogLevel level, const CauseRow& row, std::span<const CauseValue> values) noexcept;

template <Cause kCause, typename... Values>
auto values_for(const Values&... values) noexcept {
  static_assert(holes_of(row_of(kCause).sentence) == sizeof...(Values), "the row has another number of holes");
  static_assert(have_units<std::decay_t<Values>...>(row_of(kCause).sentence), "a value is not of its hole's unit");
  return std::array<CauseValue, sizeof...(Values)>{CauseValue(values)...};
}

// One line, cut where it is longer than 1000 bytes, and one write(2), so that lines of several threads do not mix.
template <Cause kCause, typename... Values>
void say(const Values&... values) noexcept {
  static_assert(row_of(kCause).severity != LogLevel::part);
  say_at(row_of(kCause).severity, row_of(kCause), values_for<kCause>(values...));
}

// The same, where the program need not be bothered with this one.
template <Cause kCause, typename... Values>
void say_as_info(const Values&... values) noexcept {
  say_at(LogLevel::info, row_of(kCause), values_for<kCause>(values...));
}

// A part of a sentence, or a reason that is kept.
template <Cause kCause, typename... Values>
std::string words(const Values&... values) {
  return text_of(row_of(kCause), values_for<kCause>(values...));
}

// ... without holes.
template <Cause kCause>
constexpr const char* phrase() noexcept {
  static_assert(holes_of(row_of(kCause).sentence) == 0);
  return row_of(kCause).sentence.data();  // a literal: it ends with a zero
}

}  // namespace reprise
