// What a person at a terminal sees besides: colours, and how far a command is. In a pipe there is neither.
#include <pty.h>

#include "tests/e2e/cli/installed.h"

namespace reprise::tools::test {
namespace {

class Terminal : public Installed {
 protected:
  // All that the command prints on a terminal.
  std::string at_terminal(const Words& arguments, const std::map<std::string, std::string>& environment = {}) const {
    Start what = start(arguments);
    int screen = -1;
    const pid_t child = forkpty(&screen, nullptr, nullptr, nullptr);
    if (child == 0) {
      setenv("TERM", "xterm", 1);
      unsetenv("NO_COLOR");
      for (const auto& [name, value] : what.environment) setenv(name.c_str(), value.c_str(), 1);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> words;
      for (std::string& word : what.arguments) words.push_back(word.data());
      words.push_back(nullptr);
      execv(words[0], words.data());
      _exit(127);
    }
    std::string seen;
    char block[4096];
    for (ssize_t size; (size = ::read(screen, block, sizeof block)) > 0;) seen.append(block, static_cast<size_t>(size));
    close(screen);
    waitpid(child, nullptr, 0);
    return seen;
  }
};

TEST_F(Terminal, ErrorsAndFindingsHaveColours) {
  EXPECT_TRUE(has(at_terminal({"dump", path("missing")}), "\x1b[31mreprise:\x1b[0m"));
  EXPECT_TRUE(has(at_terminal({"doctor", "--device", "sim"}), "\x1b[32mgood"));
}

TEST_F(Terminal, NoColourWhereNoneIsWanted) {
  const std::map<std::string, std::string> refusals[] = {{{"NO_COLOR", "1"}}, {{"TERM", "dumb"}}};
  for (const auto& refusal : refusals) {
    EXPECT_FALSE(has(at_terminal({"dump", path("missing")}, refusal), "\x1b[")) << refusal.begin()->first;
    EXPECT_FALSE(has(at_terminal({"doctor", "--device", "sim"}, refusal), "\x1b[3")) << refusal.begin()->first;
  }
  EXPECT_TRUE(has(at_terminal({"dump", path("missing")}, {{"NO_COLOR", ""}}), "\x1b[31m")) << "empty is not set";
  EXPECT_FALSE(has(reprise({"dump", path("missing")}).err, "\x1b"));
  EXPECT_FALSE(has(reprise({"doctor", "--device", "sim"}).out, "\x1b"));
}

TEST_F(Terminal, WhatTakesLongSaysHowFarItIs) {
  const std::string graph = path("gpt.json");
  well(reprise({"workload", "gpt", "--layers", "4", "-o", graph}));
  const Words command = {"simulate", graph, "--budget", "60%..90%:10%", "--no-fluid"};
  const std::string seen = at_terminal(command);
  EXPECT_TRUE(has(seen, "reprise: planning with auto ... 3 of 4"));
  EXPECT_TRUE(has(seen, " a second, "));
  EXPECT_TRUE(has(seen, " s left"));
  const Finished piped = reprise(command);
  EXPECT_FALSE(has(piped.err, " of 4"));
  EXPECT_FALSE(has(piped.err + piped.out, "\x1b"));
}

}  // namespace
}  // namespace reprise::tools::test
