// Launches and copies that got no memory in a run that came to its end all the same: whoever called them may have
// swallowed the error, so the last line and the page's first sentence name them. Programs look at what an allocation
// answers.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {

// "evaluate, memset"; empty: none, or it is told with how the program ended.
inline std::string calls_without_memory(const RunLog& log) {
  constexpr size_t kMostNamed = 3;
  if (!log.ended || !log.ending.empty()) return "";
  std::vector<std::string> named;
  for (const RunShortage& one : log.shortages) {
    const bool known = std::find(named.begin(), named.end(), one.call) != named.end();
    if (!known && one.call != "An allocation") named.push_back(one.call);
  }
  std::string text;
  for (size_t i = 0; i < std::min(named.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + named[i];
  return named.size() > kMostNamed ? text + " and others" : text;
}

}  // namespace reprise::report
