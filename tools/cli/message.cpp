#include "tools/cli/message.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace reprise::tools {

void say(std::string_view line) {
  std::string text;
  for (const char c : line) text += c == '\n' ? ' ' : c;  // one event, one line
  fmt::print(stderr, "reprise: {}\n", text);
}

int fail(const Status& status) {
  say(status.message());
  return status.code() == StatusCode::invalid_argument ? kExitUsage : kExitFailure;
}

int fail_usage(std::string_view what) {
  say(what);
  return kExitUsage;
}

Progress::Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::step(std::string_view what) {
  if (!wanted_) return;
  fmt::print(stderr, "\r\x1b[Kreprise: {} ...", what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace reprise::tools
