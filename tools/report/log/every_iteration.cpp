#include "tools/report/log/every_iteration.h"

#include <map>

#include "preload/base/run_log_keys.h"

namespace reprise::report {

std::vector<ListedIteration> every_iteration(const RunLog& log) {
  namespace mode = run_log::iteration;
  std::map<uint64_t, ListedIteration> listed;
  const auto add = [&](uint64_t index, const char* word, const RunIteration* timed) {
    listed.emplace(index, ListedIteration{index, word, timed});
  };
  for (const RunIteration& it : log.iterations) add(it.index, (it.planned ? mode::planned : mode::on_demand).name, &it);
  for (const RunRepeats& over : log.repeats) {
    for (uint64_t i = 0; i < over.iterations; ++i) add(over.first + i, mode::on_demand.name, nullptr);
  }
  for (const RunDivergence& one : log.divergences) {
    if (is_half_over(one, log.plan_calls)) add(one.iteration, "unfinished", nullptr);
  }
  std::vector<ListedIteration> rows;
  rows.reserve(listed.size());
  for (const auto& [index, one] : listed) rows.push_back(one);
  return rows;
}

}  // namespace reprise::report
