#include "tools/manual/help_formatter.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>

namespace reprise::tools {
namespace {

std::string plain_kind(const std::string& kind) {
  return kind == "UINT" || kind == "INT" || kind == "FLOAT" ? "NUMBER" : kind;
}

// "TEXT:{gpu,sim}" is gpu|sim, and "UINT:INT in [1 - 1000]" is NUMBER (1 to 1000).
std::string plain_type(const std::string& type) {
  const size_t colon = type.find(':');
  std::string kind = plain_kind(type.substr(0, colon));
  if (colon == std::string::npos) return kind;
  const std::string check = type.substr(colon + 1);
  if (check.front() == '{') {
    const std::string choices = check.substr(1, check.size() - 2);
    return fmt::format("{}", fmt::join(CLI::detail::split(choices, ','), "|"));
  }
  const size_t range = check.find("in [");
  const size_t dash = check.find(" - ", range);
  if (range == std::string::npos || dash == std::string::npos) return type;
  const std::string most = check.substr(dash + 3, check.find(']', dash) - dash - 3);
  return fmt::format("{} ({} to {})", kind == "TEXT" ? "NUMBER" : kind, check.substr(range + 4, dash - range - 4),
                     most);
}

// In the same order each time: CLI11's is that of addresses.
std::string names_of(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

class PlainFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0) {
      if (!option->get_type_name().empty()) text += " " + plain_type(option->get_type_name());
      if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
      if (option->get_required()) text += " (required)";
    }
    if (!option->get_needs().empty()) text += fmt::format(" (with {})", names_of(option->get_needs()));
    if (!option->get_excludes().empty()) text += fmt::format(" (not with {})", names_of(option->get_excludes()));
    return text;
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> make_help_formatter() { return std::make_shared<PlainFormatter>(); }

}  // namespace reprise::tools
