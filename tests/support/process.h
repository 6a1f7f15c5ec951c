// Starts a program with its output captured, for tests of the command line. POSIX only, no shell in between.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reprise::tools::test {

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Finished {
  int exit_code = -1;
  int signal = 0;  // it died of
  std::string out;
  std::string err;
};

struct Start {
  Words arguments;                                      // [0] is a path
  std::map<std::string, std::string> environment = {};  // on top of ours
  std::string input = {};
  std::function<void(int pid)> meanwhile = {};  // runs after the first byte on stdout, to send signals
  bool unprivileged = false;                    // gives root's rights up first, where it has them
};

Finished run(const Start& start);

}  // namespace reprise::tools::test
