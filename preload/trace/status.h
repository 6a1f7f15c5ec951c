// The one error type outside the victim process's hot path: a code and one line "what, why, what to do".
// Used by the trace reader, the image parsers, the plan file, the analyzer and the command line. Never thrown.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace reprise {

enum class StatusCode : uint8_t {
  ok = 0,
  invalid_argument,  // the caller's input is wrong (command line: exit 2)
  not_found,         // a file or an id that does not exist
  corrupt,           // a file that fails its checksum or its structure
  truncated,         // a file that ends early
  unsupported,       // a version or a feature that this build does not know
  infeasible,        // no plan fits the budget
  io_error,          // the operating system said no
  internal,          // a check of ours failed
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status success() { return {}; }
  bool ok() const { return code_ == StatusCode::ok; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

// A value or the Status that says why there is none. value() on an error is a programming error (std::get throws).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return std::holds_alternative<T>(state_); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace reprise
