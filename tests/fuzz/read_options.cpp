// What people type: amounts, variables, command lines.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "preload/base/config.h"
#include "tests/fuzz/readers.h"
#include "tools/cli/budget_range.h"
#include "tools/commands/command_line.h"

namespace reprise::fuzz {
namespace {

std::vector<std::string> lines_of(std::string_view bytes) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    lines.emplace_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> environment;  // NAME=VALUE, of the input that is read

const char* look_up(const char* name) {
  const std::string begin = std::string(name) + "=";
  for (const std::string& one : environment) {
    if (one.starts_with(begin)) return one.c_str() + begin.size();
  }
  return nullptr;
}

}  // namespace

bool read_amounts(std::string_view bytes) {
  const std::string text(bytes);
  Amount amount;
  if (parse_amount(text.c_str(), &amount)) FUZZ_CHECK(amount.given() && amount.bytes <= kLargestAmount);
  const Result<uint64_t> size = tools::parse_size(bytes);
  if (size.ok()) FUZZ_CHECK(size.value() <= uint64_t{1} << 63 && !tools::format_bytes(size.value()).empty());
  const Result<std::vector<tools::Budget>> budgets = tools::parse_budgets(bytes);
  if (!budgets.ok()) return false;
  FUZZ_CHECK(!budgets.value().empty() && budgets.value().size() <= 2000);
  for (const tools::Budget& budget : budgets.value()) FUZZ_CHECK(!tools::to_variable(budget).empty());
  return true;
}

bool read_variables(std::string_view bytes) {
  environment = lines_of(bytes);
  std::vector<const char*> pointers;
  for (const std::string& one : environment) pointers.push_back(one.c_str());
  pointers.push_back(nullptr);
  say_misspelt(pointers.data());
  const Config config = read_config(look_up);
  const bool accepted = config.budget.given();
  // A process reads its variables once, and keeps its copies of texts, those of defaults among them.
  const auto drop = [](const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, const char*>) {
      std::free(const_cast<char*>(value));
    }
  };
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) drop(config.field);
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
  return accepted;
}

bool read_command_line(std::string_view bytes) {
  static tools::CommandLine line;
  std::vector<std::string> words = lines_of(bytes);
  words.insert(words.begin(), "reprise");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int exit_code = 0;
  const tools::Action action = line.read(static_cast<int>(words.size()), arguments.data(), &exit_code);
  FUZZ_CHECK(action || exit_code == 0 || exit_code == 1 || exit_code == 2);
  return action != nullptr;
}

}  // namespace reprise::fuzz
