#include "tools/report/same_recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "preload/trace/identity.h"
#include "tools/cli/sizes.h"
#include "tools/report/curve/made_of.h"
#include "tools/report/log/redacted.h"
#include "tools/report/view/travels.h"

namespace reprise::tools {
namespace {

using report::in_parentheses;

std::string info(const trace::Trace& trace, const char* key) {
  const auto found = trace.info.find(key);
  return found == trace.info.end() ? std::string() : found->second;
}

uint64_t program_of(const trace::Trace& trace) {
  return std::strtoull(info(trace, "program.hash").c_str(), nullptr, 16);
}

std::string hash_text(uint64_t hash) {
  char text[17];
  trace::format_identity(hash, text);
  return text;
}

Status other(const std::string& what) { return {StatusCode::corrupt, what + "; give those that belong together"}; }

Status plan_and_trace(const plan::Plan& plan, const trace::Trace& trace) {
  const uint64_t hash = program_of(trace);
  if (hash == 0 || plan.program_hash == 0 || hash == plan.program_hash) return {};
  return other(fmt::format("the plan was made for another program ({}) than the trace was recorded of",
                           in_parentheses(plan.program)));
}

Status log_and_trace(const report::RunLog& log, const trace::Trace& trace) {
  const uint64_t hash = program_of(trace);
  const uint64_t run = std::strtoull(log.program_hash.c_str(), nullptr, 16);
  if (hash != 0 && run != 0 && hash != run) {
    return other(fmt::format("the run was of another program ({}) than the trace was recorded of ({})",
                             in_parentheses(log.program), in_parentheses(info(trace, "program"))));
  }
  const uint64_t recording = std::strtoull(info(trace, "time.start_ns").c_str(), nullptr, 10);
  if (log.recording == 0 || recording == 0 || recording == log.recording) return {};
  return other("the run made another recording than this trace");
}

// Several plans of one iteration, for other budgets or by other policies, differ in what they predict.
bool is_first_plan(const report::RunLog& log, const plan::Plan& plan) {
  return log.policy == plan.policy && log.plan_budget_bytes == plan.budget_bytes &&
         log.plan_predicted_ns == plan.predicted_ns && log.plan_offload_bytes == plan.offload_bytes &&
         log.plan_reload_bytes == plan.reload_bytes;
}

std::string in_words(const std::string& policy, uint64_t budget_bytes, uint64_t predicted_ns, uint64_t reload_bytes) {
  return fmt::format("policy {}, {}, {} predicted, {} back", policy, format_bytes(budget_bytes),
                     format_duration(predicted_ns), format_bytes(reload_bytes));
}

Status log_and_plan(const report::RunLog& log, const plan::Plan& plan) {
  const uint64_t run = std::strtoull(log.program_hash.c_str(), nullptr, 16);
  if (run != 0 && plan.program_hash != 0 && run != plan.program_hash && log.plan_count == 0) {
    return other(fmt::format("the run was of another program ({}) than the plan was made for ({})",
                             in_parentheses(log.program), in_parentheses(plan.program)));
  }
  const std::string hash = hash_text(plan.iteration_hash);
  const auto& followed = log.iteration_hashes;
  const auto said = [](const std::string& one) { return !one.empty(); };
  const bool known = !followed.empty() && std::all_of(followed.begin(), followed.end(), said);
  if (known && followed.front() != hash) return other("the run had another plan, of another iteration");
  return check_plan_of_run(log, plan);
}

// The calls of the plan, one behind the other, somewhere in the trace.
bool contains(const trace::Trace& trace, const plan::Plan& plan) {
  std::vector<uint64_t> wanted;
  for (const plan::Call& call : plan.calls) {
    if (!call.inserted && call.kind == plan::CallKind::op) wanted.push_back(call.signature);
  }
  std::vector<uint64_t> there;
  for (const trace::Event& event : trace.events) {
    if (const auto* const op = std::get_if<trace::Op>(&event)) there.push_back(op->record.signature);
  }
  return std::search(there.begin(), there.end(), std::boyer_moore_horspool_searcher(wanted.begin(), wanted.end())) !=
         there.end();
}

// Which of the program's tensors an op touches, in order: parts of one that is split count once.
std::vector<uint32_t> touched_by(const plan::Call& call, const std::vector<uint32_t>& numbers) {
  std::vector<uint32_t> touched;
  for (const plan::OpAccess& access : call.accesses) touched.push_back(numbers[access.tensor]);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

// For each of the program's calls that the plan has.
std::vector<std::vector<uint32_t>> all_touched(const plan::Plan& plan) {
  const std::vector<uint32_t> numbers = report::numbers_of(plan);
  std::vector<std::vector<uint32_t>> touched;
  for (const plan::Call& call : plan.calls) {
    if (call.inserted) continue;
    touched.push_back(touched_by(call, numbers));
    if (call.tensor != plan::kNone) touched.back().push_back(numbers[call.tensor]);
  }
  return touched;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Behind the program, of a command line.
std::string arguments_of(const std::string& command) {
  const size_t blank = command.find(' ');
  return blank == std::string::npos ? "" : command.substr(blank + 1);
}

std::string joined(const std::vector<std::string>& words, size_t begin, size_t end) {
  constexpr size_t kMost = 120;
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (text.empty() ? "" : " ") + words[i];
  if (text.empty()) return "without";
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

std::string two_recordings(const std::string& differing) {
  return differing.empty()
             ? "they were made of two recordings, or of two parts of one"
             : "they were made of two recordings, of a program called with different arguments" + differing;
}

// Tensor for tensor, whatever numbers their allocations had where they were recorded.
bool have_same_tensors(const plan::Plan& one, const plan::Plan& two) {
  const std::vector<report::Travel> first = report::travels_of(one);
  const std::vector<report::Travel> second = report::travels_of(two);
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const report::Travel& a, const report::Travel& b) { return a.bytes == b.bytes; }) &&
         all_touched(one) == all_touched(two);
}

}  // namespace

Status check_plan_of_run(const report::RunLog& log, const plan::Plan& plan) {
  if (log.policy.empty() || log.plan_predicted_ns == 0 || is_first_plan(log, plan)) return {};
  return other(fmt::format("the run had another plan ({}) than this one ({})",
                           in_words(log.policy, log.plan_budget_bytes, log.plan_predicted_ns, log.plan_reload_bytes),
                           in_words(plan.policy, plan.budget_bytes, plan.predicted_ns, plan.reload_bytes)));
}

std::string differing_arguments(const std::string& one, const std::string& two) {
  if (report::is_redacted(one) || report::is_redacted(two)) return "";
  const std::vector<std::string> a = words_of(one);
  const std::vector<std::string> b = words_of(two);
  if (a == b || one.empty() || two.empty()) return "";
  const size_t shorter = std::min(a.size(), b.size());
  size_t begin = 0;
  while (begin < shorter && a[begin] == b[begin]) ++begin;
  size_t behind = 0;
  while (behind < shorter - begin && a[a.size() - 1 - behind] == b[b.size() - 1 - behind]) ++behind;
  // A value is named with its option.
  const auto is_option = [](const std::vector<std::string>& words, size_t at) {
    return at < words.size() && words[at].starts_with('-');
  };
  if (begin > 0 && is_option(a, begin - 1) && !is_option(a, begin) && !is_option(b, begin)) --begin;
  return fmt::format(" ({} and {})", joined(a, begin, a.size() - behind), joined(b, begin, b.size() - behind));
}

Status check_same_plans(const plan::Plan& one, const plan::Plan& two) {
  if (one.program_hash != two.program_hash && one.program_hash != 0 && two.program_hash != 0) {
    return other(fmt::format("the plans are of different programs ({} and {})", in_parentheses(one.program),
                             in_parentheses(two.program)));
  }
  const std::string why = two_recordings(differing_arguments(arguments_of(one.program), arguments_of(two.program)));
  if (one.iteration_hash != two.iteration_hash) {
    return other("the plans are of different iterations, so tensors of one are none of the other: " + why);
  }
  if (have_same_tensors(one, two)) return {};
  return other(
      "the plans are of the same calls, but what else is allocated differs, so tensors of one are none of the other: " +
      why);
}

Status check_same_iteration(const trace::Trace& trace, uint64_t iteration_hash, const plan::Plan* plan,
                            const report::RunLog* log) {
  if (plan != nullptr) {
    if (plan->iteration_hash != iteration_hash && !contains(trace, *plan)) {
      return other("the plan is of an iteration that the trace does not have: it was made of another recording" +
                   differing_arguments(arguments_of(plan->program), arguments_of(info(trace, "program"))));
    }
    if (report::is_made_of(*plan, trace)) return {};
    return other("the plan was made of another recording of this loop, in which allocations have other numbers");
  }
  if (log == nullptr || log->recording != 0 || log->iteration_hashes.empty() || log->iteration_hashes.front().empty()) {
    return {};
  }
  if (log->iteration_hashes.front() == hash_text(iteration_hash)) return {};
  return other(
      "the run had a plan of another iteration than the trace's: it was made of another recording, or of a part "
      "of this one; then give the plan, too");
}

Status check_same_recording(const trace::Trace* trace, const plan::Plan* plan, const report::RunLog* log) {
  Status status;
  if (trace != nullptr && plan != nullptr) status = plan_and_trace(*plan, *trace);
  if (status.ok() && log != nullptr && trace != nullptr) status = log_and_trace(*log, *trace);
  if (status.ok() && log != nullptr && plan != nullptr) status = log_and_plan(*log, *plan);
  return status;
}

}  // namespace reprise::tools
