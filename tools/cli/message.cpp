#include "tools/cli/message.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "tools/cli/colour.h"

namespace reprise::tools {

namespace {

void print(std::string_view line, Colour colour) {
  std::string text;
  for (const char c : line) text += c == '\n' ? ' ' : c;  // one event, one line
  text = fmt::format("{} {}\n", painted("reprise:", colour, has_colours(STDERR_FILENO)), text);
  std::fwrite(text.data(), 1, text.size(), stderr);  // without a reader the message is lost, and nothing else
}

}  // namespace

void say(std::string_view line) { print(line, Colour::bold); }

int fail(const Status& status) {
  print(status.message(), Colour::red);
  return status.code() == StatusCode::invalid_argument ? kExitUsage : kExitFailure;
}

int fail_usage(std::string_view what) {
  print(what, Colour::red);
  return kExitUsage;
}

}  // namespace reprise::tools
