// What the replay wrote while the program ran: JSON lines, here as structs. Called by the report, the exports and
// `run`. Unknown kinds and fields are skipped, so that a newer shim's log still reads.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "preload/base/room_figures.h"
#include "preload/trace/status.h"
#include "tools/report/log/which_program.h"

namespace reprise::report {

struct RunIteration {
  uint64_t index = 0;
  bool planned = false;
  uint64_t plan = 0;    // which one
  uint64_t number = 0;  // of it, as other lines name it: of a loop's two plans each has its own
  uint64_t end_ns = 0;  // CLOCK_MONOTONIC; 0: not said
  uint64_t wall_ns = 0;
  uint64_t offload_bytes = 0;
  uint64_t reload_bytes = 0;
  uint64_t spared_bytes = 0;       // left without a copy: the host had the same
  uint64_t dropped_bytes = 0;      // given up, to be computed again
  uint64_t repeated_launches = 0;  // that have computed them again
  uint64_t stall_ns = 0;
  uint64_t vmm_calls = 0;
  uint64_t calls = 0;   // of an iteration on demand: how many calls repeated; 0: not said
  bool counted = true;  // false: what it moved, waited and mapped is not known, as on demand
};
// A divergence from the plan, or the end of a loop.
struct RunDivergence {
  uint64_t iteration = 0;
  uint64_t call = 0;
  std::string expected;
  std::string got;
  std::string reason;                    // where it was no call that differed
  uint64_t at_ns = 0;                    // CLOCK_MONOTONIC; 0: not said
  std::optional<uint64_t> resumed = {};  // the iteration from which on a plan was in force again
  bool loop_end = false;                 // behind a whole iteration: that is how loops end, or pause
  uint64_t plan = 0;                     // that was left
  std::string difference = {};           // of two calls of one name
};
struct RunMemory {
  uint64_t time_ns = 0;
  uint64_t device_bytes = 0;
  uint64_t requested_bytes = 0;
  std::optional<uint64_t> moved_bytes = {};  // by then; none: not said, as in logs of before
};
struct RunActivity {
  uint64_t iteration = 0;
  uint64_t vertex = 0;
  std::string engine;  // compute, h2d, d2h
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};
struct RunOverlap {
  uint64_t iteration = 0;
  uint64_t compute_ns = 0;
  uint64_t copy_ns = 0;
  uint64_t both_ns = 0;
};
// What calls touched while no plan was in force.
struct RunCalls {
  uint64_t first = 0;
  uint64_t room_chunks = 0;
  uint64_t came_chunks = 0;  // back to the device meanwhile
  std::string there;
  std::string away;
  std::string calls;
};
// What looking ahead came to while no plan was in force.
struct RunLookAhead {
  uint64_t foreseen = 0;  // calls that were predicted
  uint64_t unforeseen = 0;
  uint64_t in_time = 0;  // calls whose tensors were there
  uint64_t late = 0;     // ... were on their way
  uint64_t missed = 0;   // ... had to be fetched then
  uint64_t moved_out_bytes = 0;
  uint64_t moved_in_bytes = 0;
  std::vector<RunCalls> noted;
};
// Iterations that were more than half over when the program did something else.
struct RunLeft {
  uint64_t count = 0;
  bool last_ended_loop = false;  // no iteration came behind the last one
};
// Why memory was managed on demand.
struct RunReason {
  std::string cause;  // run_log::on_demand's words
  std::string reason;
  std::optional<uint64_t> plan = {};
  uint64_t least_bytes = 0;  // that a plan takes at the least, where budget or device had no room for one; 0: not said
};
// A call that works on more than the budget leaves.
struct RunShortage {
  std::string call;
  uint64_t needed_bytes = 0;
  uint64_t least_bytes = 0;  // the smallest budget for it
};
// Host memory had no room for what is off the device, so an allocation or a call failed.
struct RunHostFull {
  uint64_t needed_bytes = 0;  // of host memory, at the least
  uint64_t host_bytes = 0;    // that are allowed
};
// So many iterations were over when they were seen to repeat.
struct RunRepeats {
  uint64_t first = 0;  // its number
  uint64_t calls = 0;
  uint64_t iterations = 0;
};
// What an iteration of the program is, as its whole recording has them, which need not be among the files.
struct RunRecorded {
  uint64_t calls = 0;
  uint64_t iterations = 0;
};
// How the command that `reprise run` or `replay` was given ended.
struct RunCommandEnd {
  uint64_t process = 0;  // that it was; 0: not said, and then it is the program, as in logs of before
  int exit_code = 0;
  int signal = 0;
};
struct RunUnmanaged {
  std::string what;
  uint64_t count = 0;
  uint64_t bytes = 0;
};

// A plan that came in force.
struct RunInForce {
  uint64_t iteration = 0;
  uint64_t number = 0;
};

// What "plan" lines say of each other. A plan that replaces another one, of the same loop, is told as the same one.
struct RunPlans {
  std::vector<uint64_t> numbers;  // by the number that other lines name it by
  bool kept = false;              // the first one: by an earlier run
  std::vector<uint64_t> kept_ones = {};
  std::vector<uint64_t> replaced = {};    // that were made at once, and have a better one
  std::vector<RunInForce> in_force = {};  // each plan, when it first was
  uint64_t shown = 0;                     // its number of the first one, or of what has replaced it
};

// To find out what kernels do.
struct RunExamined {
  uint64_t launches = 0;
  std::set<std::string> names;  // of kernels
  uint64_t ns = 0;
};

// Counters of the replay, by the names that the run log has for them; 0: not said.
struct RunCounters {
#define RUN_LOG_COUNTER(name, unit, help) uint64_t name = 0;
#include "preload/base/run_log_keys.def"
};

// What "start" says; "end" has the budget in bytes where it is a share of the peak.
struct RunStart {
  std::string program;                   // of several, the one that which_program() names
  std::optional<std::string> arguments;  // none: not said, as in logs of 0.1
  std::string program_hash;              // "": not said
  uint64_t recording = 0;                // which trace this process recorded; 0: none, or not said
  std::string driver;
  std::string device;
  uint64_t link_h2d_bytes_per_s = 0;  // 0: not measured
  uint64_t link_d2h_bytes_per_s = 0;
  std::string mode;
  std::string safety;  // "": not said
  uint64_t budget_bytes = 0;
  uint64_t budget_percent = 0;  // of the peak; 0: the budget was given in bytes
  uint64_t chunk_bytes = 0;
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC; 0: not said
  uint64_t process = 0;   // 0: not said
};

// What "plan" says of the first plan.
struct RunFirstPlan {
  std::string plan_path;  // where it was made: mostly gone by now
  std::string policy;
  uint64_t planned_launches = 0;
  uint64_t audited_launches = 0;
  uint64_t plan_budget_bytes = 0;  // 0: not said
  uint64_t plan_predicted_ns = 0;
  uint64_t plan_offload_bytes = 0;
  uint64_t plan_reload_bytes = 0;
  uint64_t plan_calls = 0;  // of the program in an iteration; 0: not said
  uint64_t plan_at_ns = 0;  // when it was ready; 0: not said
};

// What all "activate" lines come to.
struct RunActivations {
  uint64_t activation_count = 0;
  uint64_t activation_vmm_calls = 0;
  uint64_t first_activation = 0;  // the iteration from which on a plan was in force
  uint64_t activation_at_ns = 0;  // when one first came in force
  bool in_force_at_end = false;   // no divergence after the last activation
  uint64_t last_in_force = 0;     // the plan that came in force last
};

// What "end" says; in a log without one, what the other lines come to.
struct RunEnd {
  bool ended = false;  // there was an "end" line
  uint64_t end_ns = 0;
  std::optional<int> exit_code;  // that the program gave; none: not said
  uint64_t iterations_on_demand = 0;
  bool counted = false;                      // the replay has counted them, else keep_iterations() does
  uint64_t divergence_count = 0;             // but for loop ends
  std::optional<uint64_t> moved_bytes = {};  // out and back in all, or before the log was cut short; none: not known
  uint64_t offload_bytes = 0;                // in all, planned and on demand; in a log that was cut short: planned
  uint64_t reload_bytes = 0;
  uint64_t vmm_calls = 0;  // in all
  uint64_t buffers_not_scanned = 0;
  uint64_t outside_bytes = 0;       // that the program held around Reprise, in both of these
  uint64_t graph_bytes = 0;         // ... of them, of CUDA graphs that allocate, at most
  uint64_t peak_used_bytes = 0;     // of chunks and of what is held around them at once; 0: not said
  uint64_t peak_program_bytes = 0;  // that the program would take without Reprise; 0: not said
};

// Lines that come more than once, or may be missing.
struct RunLines {
  RunExamined examined;
  std::vector<RunIteration> iterations;
  std::vector<RunDivergence> divergences;
  std::vector<RunMemory> memory;
  std::vector<RunActivity> activities;
  std::vector<RunOverlap> overlaps;
  std::vector<RunUnmanaged> unmanaged;
  std::vector<RunReason> reasons;
  std::vector<RunShortage> shortages;
  std::vector<RunRepeats> repeats;
  std::vector<std::string> messages;     // "message" of any line that has one
  std::optional<RoomFigures> room;       // none: the device had room for the budget, or it is not said
  std::optional<RunHostFull> host_full;  // the last time
  std::optional<RunRecorded> recorded;
  std::optional<RunLookAhead> look_ahead;
};

struct RunLog : RunStart, RunFirstPlan, RunActivations, RunEnd, RunCounters, RunLines {
  std::optional<std::string> not_managed;  // why memory could not be managed; none: it was
  Chosen chosen;                           // of several programs: why that one
  std::vector<std::string> others;  // that have lines in the log, as they were called, in the order of their starts
  std::vector<std::string> planned_others;  // ... those of which there is a plan
  std::string kept_plan;                    // where `reprise run` has put the first plan; "": nowhere
  RunPlans plans;
  std::vector<std::string> iteration_hashes;  // of the plans, by number
  uint64_t plan_count = 0;                    // without those that replace others
  std::optional<RunCommandEnd> command;
  std::string ending;          // how the program ended, "exit code 3" or "signal 9 (Killed)"; empty: well, or not known
  std::string command_ending;  // ... and the command that started it, where that ended otherwise; empty: it did not
  RunLeft left;
  uint64_t unreadable_lines = 0;  // cut off or damaged
};

// " (on another stream)", behind what came; empty where the names say what is different.
std::string difference_of(const RunDivergence& one);

// As it was called.
std::string command_of(const RunLog& log);

// In words; empty when it ended well.
std::string ending_of(int exit_code, int signal);

RunLog parse_run_log(const std::string& text);
Result<RunLog> read_run_log(const std::string& path);

// Iterations of the program: by a plan, on demand, and those that it did not finish.
inline uint64_t all_iterations(const RunLog& log) {
  return log.iterations_planned + log.iterations_on_demand + log.left.count;
}

// Was the iteration more than half over? `calls`: of the program in an iteration; 0: not known.
inline bool is_half_over(const RunDivergence& one, uint64_t calls) {
  return !one.loop_end && calls > 0 && 2 * one.call >= calls;
}

// The most that the run took of the device, with what the program held around Reprise, which may be all; 0: not known.
// Logs of before say the most of each alone, which is no less.
inline uint64_t peak_of_run(const RunLog& log) {
  if (log.peak_used_bytes > 0) return log.peak_used_bytes;
  if (log.peak_device_bytes == 0) return 0;
  return log.peak_device_bytes + log.outside_bytes;
}

// No iteration began that any of its plans was made of: what was recorded for them is another program's, or the same
// one's with other sizes.
bool never_began(const RunLog& log);

// " of 2 loops": what iterations are of, where plans were made for several.
std::string of_loops(const RunLog& log);

// While nothing is planned, the log counts whatever repeats, short loops in the program's set-up included. Keeps the
// iterations on demand that have the calls of the real iteration; 0: there is none. No more of them than the replay has
// counted, where it has. What is left gets new numbers, as it is counted. And counts what left its plan, where the log
// of an older release does not say it.
void keep_iterations(RunLog& log, uint64_t calls);

// ... those of its own recording, which has them all but for those that a plan ruled.
void count_recorded(RunLog& log, const RunRecorded& recorded);

// By what an iteration ran.
enum class RunMode : uint8_t { on_demand, plan, first_plan };
// first_plan: by one that was made at once and gave way to a better one.
RunMode mode_of(const RunLog& log, const RunIteration& iteration);

// Median wall time of the iterations that were planned (or on demand), 0 when there were none.
uint64_t median_iteration_ns(const RunLog& log, bool planned);

}  // namespace reprise::report
