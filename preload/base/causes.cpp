#include "preload/base/causes.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "preload/base/readable.h"
#include "preload/trace/names.h"

namespace reprise {
namespace {
constinit std::atomic<int> current_level{static_cast<int>(LogLevel::warn)};
constinit std::atomic<LogListener> current_listener{nullptr};

constexpr bool all_units_known() {
  for (const CauseRow& row : kCauses) {
    std::string_view rest = row.sentence;
    for (Piece piece = take_piece(&rest); !piece.name.empty(); piece = take_piece(&rest)) {
      if (piece.unit == Unit::unknown) return false;
    }
  }
  return true;
}
static_assert(all_units_known(), "a hole of causes.def has a unit that there is not");

// Sizes that differ are not to look the same because both are rounded.
bool looks_like_another(const CauseRow& row, std::span<const CauseValue> values, uint64_t bytes) {
  std::string_view rest = row.sentence;
  return std::any_of(values.begin(), values.end(), [&](const CauseValue& value) {
    return take_piece(&rest).unit == Unit::bytes && value.number != bytes &&
           readable_bytes(value.number) == readable_bytes(bytes);
  });
}

// As people call it; empty where that is its name, or memory is short.
std::string shown_call(std::string_view hole, const char* name) noexcept {
  if (hole != "call" && hole != "kernel") return {};
  try {
    if (std::string_view(name).starts_with("_Z")) return trace::shown_name(name);
  } catch (...) {
  }
  return {};
}

template <typename Add>
void add_text(std::string_view hole, const char* text, const Add& add) {
  if (text == nullptr) return add("(null)");
  const std::string shown = shown_call(hole, text);
  add(shown.empty() ? std::string_view(text) : std::string_view(shown));
}

template <typename Add>
void add_value(const Piece& piece, const CauseValue& value, const Add& add) {
  const Unit unit = piece.unit;
  if (unit == Unit::text) return add_text(piece.name, value.text, add);
  if (unit == Unit::bytes) return add(readable_bytes(value.number));  // too short to be allocated
  char digits[340];                                                   // the largest double has 309
  const auto number = static_cast<unsigned long long>(value.number);
  switch (unit) {
    case Unit::mebibytes:
      std::snprintf(digits, sizeof digits, "%llu MiB", number >> 20);
      break;
    case Unit::ns:
      std::snprintf(digits, sizeof digits, "%.1f ms", static_cast<double>(number) / 1e6);
      break;
    case Unit::seconds:
      std::snprintf(digits, sizeof digits, "%.1f s", static_cast<double>(number) / 1e9);
      break;
    case Unit::percent:
      std::snprintf(digits, sizeof digits, "%.1f", value.share);
      break;
    default:
      std::snprintf(digits, sizeof digits, "%llu", number);
  }
  add(digits);
}

// The one renderer: `add` is given the pieces of the sentence.
template <typename Add>
void render(const CauseRow& row, std::span<const CauseValue> values, const Add& add) {
  std::string_view rest = row.sentence;
  for (const CauseValue& value : values) {
    const Piece piece = take_piece(&rest);
    add(piece.words);
    const bool exact = piece.unit == Unit::bytes && looks_like_another(row, values, value.number);
    add_value(exact ? Piece{piece.words, piece.name, Unit::exact_bytes} : piece, value, add);
    if (exact) add(" B");
  }
  add(rest);
}
}  // namespace

void set_log_listener(LogListener listener) noexcept { current_listener.store(listener, std::memory_order_release); }

void set_log_level(LogLevel level) noexcept { current_level.store(static_cast<int>(level), std::memory_order_relaxed); }

std::string text_of(const CauseRow& row, std::span<const CauseValue> values) {
  std::string text;
  render(row, values, [&](std::string_view words) { text += words; });
  return text;
}

std::string key_of(const Piece& hole) {
  if (hole.unit == Unit::text || hole.unit == Unit::percent) return {};
  std::string name(hole.name);
  if (hole.unit == Unit::count) return name;
  return name + (hole.unit == Unit::ns || hole.unit == Unit::seconds ? "_ns" : "_bytes");
}

void say_at(LogLevel level, const CauseRow& row, std::span<const CauseValue> values) noexcept {
  if (static_cast<int>(level) > current_level.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  constexpr std::string_view kPrefix = "reprise: ";
  char line[1024];
  size_t length = kPrefix.copy(line, sizeof line);
  render(row, values, [&](std::string_view words) {
    length += words.copy(line + length, std::min(words.size(), sizeof line - 1 - length));
  });
  line[length] = '\n';
  if (write(STDERR_FILENO, line, length + 1) < 0) errno = saved_errno;  // no other place for it
  line[length] = '\0';
  const LogListener listener = current_listener.load(std::memory_order_acquire);
  if (level == LogLevel::warn && listener != nullptr) listener({row, values, line + kPrefix.size()});
  errno = saved_errno;
}

}  // namespace reprise
