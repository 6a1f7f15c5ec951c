// Reads traces, plans and run logs, telling them apart by their content. Callers: all commands that read such files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "tools/report/log/run_log.h"
#include "tools/report/report.h"

namespace reprise::tools {

enum class FileKind : uint8_t { trace, plan, run_log, unknown };

// By the first bytes, a run log by its lines. A file that cannot be read is an error, an empty one unknown.
Result<FileKind> kind_of(const std::string& path);

// What a trace lacks at its end.
struct CutShort {
  std::string line;         // "a.trace: ...", why; empty: it lacks nothing
  bool unreadable = false;  // there are bytes that cannot be read; what lies before them is good
};
CutShort cut_short(const std::string& path, const trace::Trace& trace);
// Says it behind what was made of such a trace; the exit code: not 0 where bytes could not be read.
int finish_cut_short(const CutShort& what);
// A line where a run log has no end, and does not say how its program ended.
void say_without_end(const report::RunLog& log);
// What went wrong with such a trace may come of that: both are said.
Status of_what_there_is(const CutShort& what, const std::string& path, const Status& status);

struct LoadedFiles {
  std::optional<trace::Trace> trace;
  std::optional<plan::Plan> plan;
  std::optional<report::RunLog> log;
  CutShort cut_short;                       // of the trace
  std::vector<report::Inputs::File> named;  // by the user, in order
  report::Inputs inputs() const;            // points into this object
  // The same, with what the analyzer finds in the trace; drops from the log what is no iteration, and gives the plan
  // the run's own kernel times.
  report::Inputs examined();
  // Call sites of the trace get functions and lines, where their files are there.
  void symbolize();
  // For the report's footer: a file that was read one by one, and what to call it there.
  void tell(const std::string& path, FileKind kind, const std::string& name);
  // The plan of the run, where it is none of the files and still where the run log says.
  void find_plan_of_run();
  // Behind examined(): not ok when the files turn out to be of different recordings.
  Status belong_together;
  // The same for those who need nothing else of what the analyzer finds; count_iterations() then counts as examined().
  Status find_iteration();
  // Keeps in the log what is an iteration of the program: of the loop that the plan is of, or the log's own one, else
  // the trace; where nothing tells, whatever repeats. Pages, lines and exports have this one count.
  void count_iterations();

 private:
  struct Loop {
    uint64_t calls = 0;     // of its iteration; 0: not known
    uint64_t recorded = 0;  // iterations in the trace
    void found(const analyzer::Workload& workload);
  };
  Loop loop_;
  Status is_its_iteration(const analyzer::Workload& found) const;
  bool made_by(const report::RunLog& run) const;
  analyzer::PlanOptions options_of_run() const;
  void examine(const analyzer::Workload& found, plan::Safety safety, report::Inputs& result);
};

// What no plan for this one's budget can beat, in nanoseconds per iteration, with kernel times as it has them; 0 when
// it cannot be told. Not ok: the plan is none of this trace.
Result<uint64_t> bound_of_plan(const trace::Trace& trace, const plan::Plan& plan);

// Reads each file into its place. Errors name the file; two of one kind are an error, and files that do not belong
// together, as far as that can be told without looking for an iteration.
Status load(const std::vector<std::string>& paths, LoadedFiles& files);
// As load, with the kind known; `path` is named in the error.
Result<plan::Plan> load_plan(const std::string& path);
// A trace as it is in the file, and one to plan from: without false operands.
Result<trace::Trace> load_trace_as_recorded(const std::string& path);
Result<trace::Trace> load_trace(const std::string& path);

}  // namespace reprise::tools
