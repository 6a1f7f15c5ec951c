#include "preload/base/causes.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "preload/base/readable.h"

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

constexpr std::string_view kPrefix = "reprise: ";

// "reprise: ...\n", cut where it is too long.
class SaidLine {
 public:
  SaidLine(const CauseRow& row, std::span<const CauseValue> values) noexcept {
    add(kPrefix);
    std::string_view rest = row.sentence;
    for (const CauseValue& value : values) {
      const Piece piece = take_piece(&rest);
      add(piece.words);
      add(piece.unit, value);
    }
    add(rest);
  }

  // With the end of the line instead of a zero.
  std::string_view whole() noexcept {
    text_[length_] = '\n';
    return {text_, length_ + 1};
  }
  const char* text() noexcept {
    text_[length_] = '\0';
    return text_ + kPrefix.size();
  }

 private:
  void add(std::string_view words) noexcept {
    length_ += words.copy(text_ + length_, std::min(words.size(), sizeof text_ - 1 - length_));
  }

  void add(Unit unit, const CauseValue& value) noexcept {
    if (unit == Unit::text) return add(value.text != nullptr ? value.text : "(null)");
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

  char text_[1024];
  size_t length_ = 0;
};
}  // namespace

void set_log_listener(LogListener listener) noexcept { current_listener.store(listener, std::memory_order_release); }

void set_log_level(LogLevel level) noexcept { current_level.store(static_cast<int>(level), std::memory_order_relaxed); }

std::string text_of(const CauseRow& row, std::span<const CauseValue> values) { return SaidLine(row, values).text(); }

std::string key_of(const Piece& hole) {
  if (hole.unit == Unit::text || hole.unit == Unit::percent) return {};
  std::string name(hole.name);
  if (hole.unit == Unit::count) return name;
  return name + (hole.unit == Unit::ns || hole.unit == Unit::seconds ? "_ns" : "_bytes");
}

void say_at(LogLevel level, const CauseRow& row, std::span<const CauseValue> values) noexcept {
  if (static_cast<int>(level) > current_level.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  SaidLine line(row, values);
  const std::string_view whole = line.whole();
  if (write(STDERR_FILENO, whole.data(), whole.size()) < 0) errno = saved_errno;  // no other place for it
  const LogListener listener = current_listener.load(std::memory_order_acquire);
  if (level == LogLevel::warn && listener != nullptr) listener({row, values, line.text()});
  errno = saved_errno;
}

}  // namespace reprise
