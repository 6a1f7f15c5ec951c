#include "tools/report/log/every_iteration.h"

#include <cstring>
#include <map>

#include "preload/base/run_log_keys.h"

namespace reprise::report {

namespace {

// So that there are as many as were counted.
void add_unlisted(std::vector<ListedIteration>& rows, const char* mode, uint64_t counted) {
  uint64_t listed = 0;
  for (const ListedIteration& one : rows) listed += std::strcmp(one.mode, mode) == 0 ? 1 : 0;
  for (; listed < counted; ++listed) rows.push_back({{}, mode, nullptr});
}

constexpr const char* kUnfinished = "unfinished";

}  // namespace

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
    if (is_half_over(one, log.plan_calls)) add(one.iteration, kUnfinished, nullptr);
  }
  std::vector<ListedIteration> rows;
  rows.reserve(listed.size());
  for (const auto& [index, one] : listed) rows.push_back(one);
  add_unlisted(rows, mode::planned.name, log.iterations_planned);
  add_unlisted(rows, mode::on_demand.name, log.iterations_on_demand);
  add_unlisted(rows, kUnfinished, log.left.count);
  return rows;
}

}  // namespace reprise::report
