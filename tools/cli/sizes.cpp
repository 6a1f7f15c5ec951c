#include "tools/cli/sizes.h"

#include <fmt/core.h>

#include "preload/base/amount.h"
#include "preload/base/readable.h"

namespace reprise::tools {
namespace {

Status not_a_size(std::string_view text) {
  return {StatusCode::invalid_argument,
          fmt::format("'{}' is not a size; write for example 12GiB, 800MiB, plain bytes or 50%", text)};
}

Result<Budget> parse_percent(double number, std::string_view text, std::string_view option) {
  if (number <= 0 || number > 100) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: a percentage is above 0% and at most 100%; write for example 50%", option, text));
  }
  Budget budget;
  budget.percent = number;
  return budget;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  WrittenAmount written;
  switch (read_amount(text, &written)) {
    case AmountProblem::none:
      break;
    case AmountProblem::no_amount:
      return not_a_size(text);
    case AmountProblem::negative:
      return Status(StatusCode::invalid_argument,
                    fmt::format("'{}' is negative; write for example 12GiB or 50%", text));
    case AmountProblem::too_large:
      return Status(StatusCode::invalid_argument, fmt::format("'{}' is too large; check the unit", text));
  }
  if (written.is_percent) return not_a_size(text);
  return written.bytes;
}

Result<Budget> parse_budget(std::string_view text, std::string_view option) {
  WrittenAmount written;
  if (read_amount(text, &written) == AmountProblem::none && written.is_percent) {
    return parse_percent(written.percent, text, option);
  }
  Result<uint64_t> size = parse_size(text);
  if (!size.ok()) return Status(StatusCode::invalid_argument, fmt::format("{}: {}", option, size.status().message()));
  Budget budget;
  budget.bytes = size.value();
  if (budget.bytes >= 1 && budget.bytes <= 100 && text.find_first_not_of("0123456789") == std::string_view::npos) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{0} {1}: {1} bytes are too few to hold anything; did you mean {1}%?", option, text));
  }
  if (budget.bytes < kSmallestBudget) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: too small to hold anything; write for example 12GiB or 50%", option, text));
  }
  if (budget.bytes > kLargestBudget) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: more than any device has; check the unit", option, text));
  }
  return budget;
}

std::string to_variable(const Budget& budget) {
  if (budget.free) return kFreeMemory;
  return budget.bytes > 0 ? fmt::format("{}", budget.bytes) : fmt::format("{:g}%", budget.percent);
}

std::string format_bytes(uint64_t bytes) { return readable_bytes(bytes); }

std::string typed_bytes(uint64_t bytes) {
  constexpr uint64_t kib = 1024;
  const uint64_t count = (bytes + kib - 1) / kib;
  return count % kib == 0 ? fmt::format("{}MiB", count / kib) : fmt::format("{}KiB", count);
}

std::string format_rate(uint64_t bytes_per_s) {
  const double value = static_cast<double>(bytes_per_s);
  if (value >= 1e9) return decimal(value, 1e9, 1) + " GB/s";
  if (value >= 1e6) return decimal(value, 1e6, 1) + " MB/s";
  return decimal(value, 1e3, 1) + " KB/s";
}

std::string format_link(uint64_t to_device, uint64_t to_host) {
  const std::string there = format_rate(to_device);
  const std::string back = format_rate(to_host);
  return there == back ? there + " each way" : fmt::format("{} to the device and {} back", there, back);
}

std::string format_duration(uint64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds);
  if (value >= 1e9) return decimal(value, 1e9, 2) + " s";
  if (value >= 1e6) return decimal(value, 1e6, 1) + " ms";
  if (value >= 1e3) return decimal(value, 1e3, value < 99'950 ? 1 : 0) + " us";
  return fmt::format("{} ns", nanoseconds);
}

}  // namespace reprise::tools
