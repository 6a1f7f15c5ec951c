// The report: what a person wants to know about a recording, a plan and a run, as one JSON value (what tests compare)
// and as one HTML page that holds it. Called by `report` and `run`.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "tools/report/curve/budget_curve.h"
#include "tools/report/log/run_log.h"
#include "tools/report/view/waits.h"

namespace reprise::report {

using Json = nlohmann::ordered_json;

// Any of the three may be absent (nullptr), but not all. The pointed-to objects are only read.
struct Inputs {
  const trace::Trace* trace = nullptr;
  const plan::Plan* plan = nullptr;
  const RunLog* log = nullptr;
  std::string program = {};     // command line; empty: taken from plan, log or trace
  std::string ending = {};      // how the program ended, "exit code 3"; empty: well, or not known
  bool reason_is_told = false;  // of a summary: why no iteration was planned, which its reader has read already
  bool ran_here = false;        // ... and what was said on stderr while the program ran
  bool cut_short = false;       // the trace has no end
  uint64_t budget_bytes = 0;    // 0: taken from plan or log
  uint64_t bound_ns = 0;        // no plan for this budget can be faster, with recorded kernel times; 0: not known
  uint64_t run_bound_ns = 0;    // the same with the kernel times of an iteration of this run; 0: not known
  // Of the trace's iteration, where one was looked for.
  uint64_t iteration_calls = 0;
  uint64_t iterations_recorded = 0;
  std::string iteration_covers = {};  // "97 % of the recorded device time", or about so much of the run's
  uint64_t minimum_bytes = 0;         // no smaller budget has a plan
  uint64_t peak_bytes = 0;            // of the device without Reprise: percentages are of it; 0: not looked at
  std::string no_iteration = {};      // why there is none
  bool one_loop = true;               // it is nearly all that the program does, so that a budget for it is one for all
  BudgetCurve curve = {};             // of other budgets; no policy: not looked at
  // Kernels' times that all is predicted with, the plan's own figures among it: "of iteration 5 of this run"; empty: as
  // recorded, which the plan was made with.
  std::string whose_times = {};
  uint64_t recorded_compute_ns = 0;  // by the recording as a whole, where the plan was made with other times
  uint64_t made_compute_ns = 0;      // what the plan had with those that it was made with; 0: the plan has them
  uint64_t made_predicted_ns = 0;
  double known_share = -1;        // of the computing, by kernels of which facts are known; below 0: not looked at
  std::string assumed_link = {};  // for predictions over a link that was not measured; a clause
  plan::PlannedLink recorded_link = {};  // that the bounds and other budgets' times are for; no rates: not known
  bool no_lines = false;                 // of call sites: libdw is not installed
  // About this report.
  struct File {
    std::string name;
    std::string kind;
    uint64_t bytes = 0;
    std::string hash;  // of its content, 16 hexadecimal digits
  };
  std::vector<File> files = {};
  std::string version = {};  // of Reprise, with the commit
  std::string date = {};     // of the report
};

// Everything the page shows; times in nanoseconds, memory in bytes. The same inputs give the same value.
Json make_data(const Inputs& inputs);
// As a file of JSON.
std::string as_file(const Json& data);
// The self-contained page: styles, scripts and data inline, nothing loaded from anywhere.
std::string make_page(const Json& data);
// The same frame around another script of tools/report/page/ (page.h) and its data, with the chart library or without.
std::string make_page(const Json& data, const char* script, bool with_charts);
// One line for the terminal: peak, budget, time per iteration.
std::string make_summary(const Inputs& inputs);

// A run had a plan, and it is not among the files: then some sections are empty, which is said, and how to get it.
bool lacks_plan(const Inputs& inputs);
std::string plan_is_lacking(const Inputs& inputs);

// For a plan or simulation over a link that was neither measured nor given: what is assumed, and what helps, as a
// clause; else empty. `source`: what does not say it, unless that is a machine with a name; `recorded`: it is a
// recording.
std::string assumed_link(const plan::PlannedLink& link, const std::string& source, bool recorded);

// The recording at `trace` has times of more iterations than the plan of its own run had: that, as a sentence.
std::string times_of_more(const std::string& trace);

// Was there a plan, in force or not? Then why there was none before does not matter.
bool has_plans(const RunLog& log);

// The program ended with an error, and host memory had been full: not for want of repetition, then.
bool died_of_full_host(const Inputs& inputs);
// How much of it was needed, as a clause.
std::string full_host_words(const RunHostFull& full);

// Of a run log alone, without a plan: "273 repetitions of 12 calls", which may be of anything short. Only a recording,
// or a plan, tells what an iteration of the program is; then it is empty, and where nothing repeats.
std::string repetitions(const Inputs& inputs);

// Why a run log has no end, where it is unknown how the program ended, as a clause.
std::string unseen_end(const RunLog& log);
// Why the peak of a run is 0, in words; empty if it took memory.
std::string no_memory_words(const RunLog& log);
// How a run ended that did not end well, or whose end was not seen, and what it had used by then, as a clause.
// Empty: it ended well.
std::string ending_words(const Inputs& inputs);
// How the command ended that started the program, where it ended otherwise, as a clause. Empty: it did not.
std::string command_words(const Inputs& inputs);

// Of a run in which no iteration was planned: why, as a clause, by what the run log says.
std::string why_unplanned(const Inputs& inputs);

// The same for one line of the log: where it is that nothing was found to repeat, or not in time, and there is no
// iteration in the recording as a whole, that is the reason, in its words: it was looked at to the end.
RunReason as_known(const Inputs& inputs, const RunReason& reason);

// Why no plan was made, in the last word that is known: of the log, of the recording, or of the log's end where the
// program was killed. None: there was a plan, or the reason is unknown.
std::optional<RunReason> last_reason(const Inputs& inputs);

// That, where it is not what the log has: for the log, which is all that a later report may be given.
std::optional<RunReason> found_in_recording(const Inputs& inputs);

// The sections of make_data, one function each.
#define REPORT_SECTION(name) Json name##_section(const Inputs& inputs);
#include "tools/report/sections.def"
#undef REPORT_SECTION
// "with kernel times as recorded", or those of this run: of all that is predicted.
std::string with_whose_times(const Inputs& inputs);
// Of which device times were measured: "iteration 5", and how far it is from most. There is one.
std::string the_measured_one(const Inputs& inputs);

// The run was on another link than the plan, or the recording, is for: then what these predict is not compared with
// what it took.
bool is_plan_for_another_link(const Inputs& inputs);
bool is_recording_of_another_link(const Inputs& inputs);
// Not known of where a plan's iteration has gone.
inline constexpr const char* kRest = "not known: between iterations, and behind the last kernel";

// Shared by sections. 0 of nothing.
inline double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The numbers that several of them name.
struct Facts {
  std::string program;
  uint64_t budget = 0;
  uint64_t plan_budget = 0;    // what planned iterations keep to, where a replay's plan is for less; else 0
  uint64_t peak_before = 0;    // without Reprise
  bool tensors_alone = false;  // ... is not known: it is what tensors have, of which a device takes more
  uint64_t peak_planned = 0;
  uint64_t peak_actual = 0;     // measured; 0: no run
  uint64_t compute_ns = 0;      // one iteration, computing alone, with kernel times as recorded
  uint64_t bound_ns = 0;        // what no plan can beat with recorded kernel times; 0: not known
  uint64_t run_compute_ns = 0;  // one iteration of this run, computing alone; 0: not measured
  uint64_t run_bound_ns = 0;    // and what no plan can beat then
  uint64_t run_iteration = 0;   // which iteration these two are of
  uint64_t run_wall_ns = 0;     // and what it took; 0: not said
  uint64_t predicted_ns = 0;    // with the kernel times of this page
  uint64_t actual_ns = 0;       // median planned iteration
  uint64_t on_demand_ns = 0;    // median iteration on demand
  // What computing waited for copies that the plan makes, of the measured iteration; of a plan alone, as predicted.
  // None: not known.
  std::optional<uint64_t> waited_for_copies_ns = {};
  uint64_t total_ns = 0;        // from Reprise's start to its end
  uint64_t before_plan_ns = 0;  // of it, until a plan first came in force; 0: none did
};
Facts collect_facts(const Inputs& inputs);
// In charts, where it is not the run's.
inline constexpr const char* kPlansBudget = "The plan's budget";

// Did several programs of one run use the device, of which the page shows one?
bool is_of_one_of_several(const Inputs& inputs);

// The call stack of a recorded allocation, innermost frame first; in brackets: why it has none.
std::string call_site_words(const trace::Trace& trace, const trace::AllocateRecord& record);

// What is alive when most is, the largest first; pointers into `trace`.
std::vector<const trace::AllocateRecord*> tensors_at_peak(const trace::Trace& trace);

// What a recording's program had asked for of device memory at once, at most.
uint64_t asked_bytes(const trace::Trace& trace);

// The others of them, as they were called: the first few.
std::string others_in_words(const std::vector<std::string>& others);
// "budget 22.0 MiB", and how much of it the plan uses, where that is for less; a share of the peak of a program that
// did not come to its end may not be of its peak. Empty: none.
std::string budget_words(const Inputs& inputs, const char* of = "");

// Of the planned iterations' time, in which share the device had nothing to run though work was submitted: the same in
// all sections. Below 0: no such iteration.
double stall_share(const RunLog& log);
// Of the one that measured_time() is of.
double measured_stall_share(const Inputs& inputs);
// Of the iteration whose device times were measured: where its time went, as waits and costs of tensors add up.
std::optional<TimeParts> measured_time(const Inputs& inputs);
// Of what the plan moves in an iteration, what this run left without a copy on average, as the host had the same bytes.
uint64_t left_of_planned_copies(const Inputs& inputs);
// "0.4 %"; only what is 0 is shown as that.
std::string small_percent(double share);
// Of times: "63 %", of 62.5 on; nothing of nothing is 0.
std::string whole_percent(uint64_t part, uint64_t whole);
// Of memory: "46 %", of 45.1 on: the least one that, typed as a budget, is no less than the part.
std::string percent_that_holds(uint64_t part, uint64_t whole);
// What a plan takes of the device, as its report and `reprise plan` say it.
uint64_t planned_peak(const plan::Plan& plan);
// "44.0 MiB instead of 48.0 MiB", or "... for tensors of ..." where rounding to chunks took more than was saved, or
// where only the tensors' bytes are known.
std::string peak_words(uint64_t after, uint64_t before, bool tensors_alone = false);

}  // namespace reprise::report
