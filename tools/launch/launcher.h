// Runs a program as a child and behaves as it does: same terminal and file descriptors, signals passed on, stops and
// continues followed, and at the end the same exit status. Callers: session (run, record, replay, audit) and `reprise
// doctor --measure`.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::tools {

struct Launch {
  std::vector<std::string> arguments;
  // Variables to set; those that are not named are inherited.
  std::vector<std::pair<std::string, std::string>> environment;
  // Asked several times a second: shall the program be ended? It is asked to end, and killed where it does not.
  std::function<bool()> ends = {};
};

struct Outcome {
  int exit_code = 0;
  int signal = 0;      // the program died of it; 0 when it exited
  bool ended = false;  // by Launch::ends
  int process = 0;     // that it was
};

// Starts the program and waits for its end. An error means that it never ran.
Result<Outcome> launch(const Launch& what);

// Ends this process as the program ended: returns its exit code, or dies of the same signal (without a second core
// file); a shell sees 128 + n either way.
int end_like(const Outcome& outcome);

}  // namespace reprise::tools
