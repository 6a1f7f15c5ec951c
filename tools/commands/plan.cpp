// `reprise plan`: from a trace and a budget to a plan. The preloaded library runs it as a child process, too, and reads
// the answer from the file of --status.
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyzer/iteration/stretch.h"
#include "analyzer/planner/fluid_bounds.h"
#include "analyzer/planner/planner.h"
#include "analyzer/policies/policy.h"
#include "analyzer/proofs/find_out.h"
#include "preload/base/readable.h"
#include "preload/footprint/headroom.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/sizes.h"
#include "tools/commands/knowledge.h"
#include "tools/device/base/device_name.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"
#include "tools/report/inputs.h"
#include "tools/report/log/links.h"
#include "tools/report/report.h"

namespace reprise::tools {
namespace {

struct PlanArguments {
  std::string trace;
  std::string budget;
  std::string output;
  std::string policy = "auto";
  std::string safety = plan::name_of(plan::kDefaultSafety);
  std::string machine;
  std::string status;
  std::string facts;
  std::string nvdisasm;
  // What the preloaded library asks for.
  struct Asked {
    uint64_t from = 0;
    std::optional<uint64_t> until;
    std::string sizes;
    uint64_t calls = 0;
    std::optional<double> share;
    bool best_start = false;
    bool first = false;
    bool nice = false;
  } asked;
  bool quiet = false;
  bool explain = false;
  bool no_recompute = false;
  bool no_facts = false;
};

constexpr int kNice = 10;
// A first plan does not wait for the code of all kernels: an image takes half a second.
constexpr double kFirstCodeSeconds = 0.5;
constexpr double kMostCodeSeconds = 60;

const char* status_word(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::not_found:
      return "no_iteration";
    case StatusCode::infeasible:
      return "infeasible";
    default:
      return "error";
  }
}

// One line of JSON: status (ok, first: of --first, where a better plan takes a while, fits: without a plan,
// no_iteration, part: below --share, early: not for --best-start, infeasible, error), message, minimum_bytes (0: not
// known), minimum_because, until (--until for the same recording).
Status write_status(const std::string& path, const char* word, const std::string& message, uint64_t minimum_bytes,
                    const std::string& because, uint64_t until) {
  if (path.empty()) return {};
  const nlohmann::ordered_json line = {{"status", word},
                                       {"message", message},
                                       {"minimum_bytes", minimum_bytes},
                                       {"minimum_because", because},
                                       {"until", until}};
  return write_file(path, line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// A missing file and a missing iteration have the same code; only the second one may come with a longer recording.
class PlanCommand {
 public:
  explicit PlanCommand(const PlanArguments& arguments) : arguments_(arguments), progress_(!arguments.quiet) {}

  int run() {
    if (arguments_.asked.nice) setpriority(PRIO_PROCESS, 0, kNice);
    Outputs outputs;
    outputs.reads(arguments_.trace).reads(arguments_.machine);
    if (arguments_.output.empty()) outputs.chooses(output_path());
    outputs.writes("-o", arguments_.output).writes("--status", arguments_.status);
    if (Status status = outputs.check(); !status.ok()) return fail(status);
    const Status made = make();
    progress_.clear();
    const char* word = outcome_ != nullptr ? outcome_
                       : searched_         ? status_word(made.code())
                       : made.ok()         ? "ok"
                                           : "error";
    const Status told = write_status(arguments_.status, word, made.message(), minimum_bytes_, minimum_because_, until_);
    if (!made.ok()) return fail(made);
    return told.ok() ? 0 : fail(told);
  }

 private:
  Status make() {
    const std::string output = output_path();
    analyzer::PlanOptions options;
    options.policy = arguments_.policy;
    const Knowledge knowledge = {arguments_.safety, arguments_.facts, arguments_.no_facts, arguments_.no_recompute,
                                 arguments_.nvdisasm};
    set_knowledge(knowledge, is_graph_path(arguments_.trace), options);
    disassembler_ = disassembler_of(knowledge);
    Status status = analyzer::check_policy(options.policy);
    if (status.ok()) status = set_budget(options);
    if (!status.ok()) return status;
    if (is_graph_path(arguments_.trace)) return plan_graph(options, output);
    progress_.step("reading the trace");
    Result<trace::Trace> trace = load_trace(arguments_.trace);
    if (!trace.ok()) return trace.status();
    const CutShort cut = cut_short(arguments_.trace, trace.value());
    if (cut.unreadable) return {trace.value().tail.code(), cut.line + "; record again"};
    if (arguments_.asked.until) trace = analyzer::stretch_until(std::move(trace.value()), *arguments_.asked.until);
    options.wanted.from_call = arguments_.asked.from;
    if (Status read = read_sizes(options); !read.ok()) return read;
    options.wanted.least_calls = arguments_.asked.calls;
    if (arguments_.asked.share && arguments_.asked.calls == 0)
      options.wanted.least_calls = 1;  // who says how much it has to be knows it
    // With --status it is the preloaded library that asks, while the program goes on.
    if (arguments_.status.empty()) cut_ = cut;
    Status made = plan_trace(trace.value(), options, output);
    if (made.ok() && !arguments_.quiet) finish_cut_short(cut_);
    return made;
  }

  Status read_sizes(analyzer::PlanOptions& options) const {
    const std::string& path = arguments_.asked.sizes;
    if (path.empty()) return {};
    std::ifstream file(path);
    uint64_t allocation = 0;
    uint64_t size = 0;
    while (file >> allocation >> size) options.wanted.sizes[allocation] = size;
    if (file.eof() && !options.wanted.sizes.empty()) return {};
    return {
        StatusCode::invalid_argument,
        fmt::format("--sizes {}: cannot be read as an allocation's number and its size in bytes on each line", path)};
  }

  Status plan_trace(const trace::Trace& trace, const analyzer::PlanOptions& options, const std::string& output) {
    searched_ = true;
    for (const trace::Event& event : trace.events) until_ = std::max(until_, trace::sequence_of(event) + 1);
    went_on_ = !trace.pauses.empty();
    const auto device = trace.info.find("device.name");
    simulated_ = device != trace.info.end() && device->second == sim::kDeviceName;
    const auto memory = trace.info.find("device.memory");
    if (memory != trace.info.end() && arguments_.machine.empty()) {
      device_bytes_ = std::strtoull(memory->second.c_str(), nullptr, 10);
      room_bytes_ = (device_bytes_ - footprint::headroom_of(device_bytes_)) / 1024 * 1024;  // as can be typed
    }
    const bool code_is_missing = look_at_code(trace, options);
    progress_.step("looking for the iteration");
    analyzer::Planning planning(trace, options);
    planning_ = &planning;
    return plan_workload(planning.workload_in_fitting_chunks(), options, output, code_is_missing);
  }

  // What the code of the recorded kernels proves, as far as it is not known yet. True: there was no time for all.
  bool look_at_code(const trace::Trace& trace, const analyzer::PlanOptions& options) {
    if (!options.known.facts || !options.known.code || options.safety == plan::Safety::strict) return false;
    progress_.step("reading the kernels' code");
    const code::FoundOut found = code::find_out(trace, options.known.facts->folder(), disassembler_,
                                                arguments_.asked.first ? kFirstCodeSeconds : kMostCodeSeconds);
    if (!found.problem.ok() && !arguments_.quiet) say(found.problem.message());
    return found.left > 0;
  }

  Status plan_graph(const analyzer::PlanOptions& options, const std::string& output) {
    progress_.step("reading the graph");
    Result<analyzer::TaskGraph> graph = read_graph(arguments_.trace, kGraphChunk);
    if (!graph.ok()) return graph.status();
    searched_ = true;
    return plan_workload(analyzer::make_workload(std::move(graph.value()), options), options, output, false);
  }

  // `more_to_come`: a later plan will rest on more.
  Status plan_workload(Result<analyzer::Workload> workload, const analyzer::PlanOptions& options,
                       const std::string& output, bool more_to_come) {
    if (!workload.ok()) return named(workload.status());
    minimum_bytes_ = analyzer::least_budget(workload.value());
    minimum_because_ = analyzer::least_budget_because(workload.value());
    if (Status part = check_iteration(workload.value().iteration); !part.ok()) return part;
    if (analyzer::holds_everything(workload.value(), budget_of(workload.value(), options))) {
      return tell_needless(workload.value(), options);
    }
    progress_.step("planning");
    analyzer::PlanSummary summary;
    const bool long_search = more_to_come || workload.value().graph.op_count >= analyzer::kFirstPlanOps;
    Result<plan::Plan> plan = Status{StatusCode::internal, ""};
    if (arguments_.asked.first && long_search && analyzer::searches(options.policy)) {
      plan = analyzer::make_first_plan(workload.value(), options, &summary);
      if (plan.ok()) outcome_ = "first";
    }
    if (!plan.ok()) plan = analyzer::make_plan(workload.value(), options, &summary);
    if (!plan.ok()) return named(plan.status());
    progress_.step("writing the plan");
    std::string name = output;
    Status written = write_output(name, !arguments_.output.empty(), plan::serialize(plan.value()));
    progress_.clear();
    if (!written.ok()) return written;
    Status told = tell(workload.value(), plan.value(), summary, options, name);
    if (told.ok() && !arguments_.quiet && planning_ != nullptr) tell_of_calls_elsewhere(workload.value(), plan.value());
    return told;
  }

  // On demand a call needs all that it works on, in the plan's chunks: what is not of the plan's loop may need more.
  void tell_of_calls_elsewhere(const analyzer::Workload& workload, const plan::Plan& plan) const {
    progress_.step("looking at calls outside of the iteration");
    const analyzer::LargestCall largest = planning_->largest_call(plan.chunk_bytes);
    progress_.clear();
    const uint64_t room = (plan.budget_bytes - std::min(plan.budget_bytes, workload.held_bytes)) / plan.chunk_bytes;
    if (largest.bytes <= room * plan.chunk_bytes) return;
    const uint64_t least = largest.bytes + workload.held_bytes;
    say(
        fmt::format("elsewhere in the recording {} works on {} at once, more than the budget of {} leaves: a replay "
                    "gets out of memory there; for that one plan with --budget {} or more",
                    largest.name, format_bytes(largest.bytes), format_bytes(plan.budget_bytes), typed_bytes(least)));
  }

  // What is most of the program may not have repeated yet, or not from its best place on.
  Status check_iteration(const analyzer::Iteration& iteration) {
    const double share = arguments_.asked.share.value_or(0);
    if (share > 0 && iteration.call_count == 1) {  // with all that it needs there, always
      outcome_ = "part";
      return named({StatusCode::not_found, "what repeats is one call, in which nothing can move"});
    }
    if (100 * iteration.coverage < share) {
      outcome_ = "part";
      return named({StatusCode::not_found,
                    fmt::format("what repeats, {} calls, covers only {}, and the rest has not repeated yet",
                                iteration.call_count, analyzer::covered(iteration))});
    }
    if (!arguments_.asked.best_start || !iteration.early) return {};
    outcome_ = "early";
    return named({StatusCode::not_found,
                  fmt::format("what repeats, {} calls, has not come often enough to begin where least is alive",
                              iteration.call_count)});
  }

  static uint64_t budget_of(const analyzer::Workload& workload, const analyzer::PlanOptions& options) {
    if (options.budget_bytes != 0) return options.budget_bytes;
    return analyzer::share_of_peak(workload, options.budget_fraction);
  }
  Status tell_needless(const analyzer::Workload& workload, const analyzer::PlanOptions& options) {
    outcome_ = "fits";
    progress_.clear();
    if (arguments_.quiet) return {};
    if (workload.peak_bytes == 0) {
      say(
          fmt::format("{}: the program has no device memory: nothing has to move within any budget, so no plan was "
                      "written",
                      arguments_.trace));
      return {};
    }
    const uint64_t budget = budget_of(workload, options);
    const bool less = has_less(workload.peak_bytes);
    const std::string but = fmt::format(
        "; but the device that it was recorded on has room for {}, of {}: memory is managed within that there",
        format_bytes(room_bytes_), format_bytes(device_bytes_));
    const std::string run = fmt::format("run{} --budget {}", on_device(), typed_bytes(less ? room_bytes_ : budget));
    say(
        fmt::format("{}: all that the program has at once, {}, fits into {}: nothing has to move, so no plan was "
                    "written{}{}",
                    arguments_.trace, format_bytes(workload.peak_bytes), format_bytes(budget), less ? but : "",
                    next(workload, run)));
    return {};
  }

  // Does the recorded device, presumably the next one to run on, have less room when nothing else uses it?
  bool has_less(uint64_t bytes) const { return device_bytes_ != 0 && bytes > room_bytes_; }

  std::string on_device() const { return simulated_ ? " --device sim" : ""; }

  // What a program can be started with. No program belongs to a task graph.
  static std::string next(const analyzer::Workload& workload, const std::string& command) {
    return workload.recorded ? fmt::format("; next: reprise {} -- program", command) : "";
  }

  // A plan of a task graph can be looked at, and no more.
  std::string next_with(const std::string& plan, const analyzer::Workload& workload) const {
    if (!workload.recorded) return "; next: reprise report " + plan;
    const bool usual = arguments_.safety == plan::name_of(plan::kDefaultSafety);
    const std::string safety = usual ? "" : " --safety " + arguments_.safety;
    return next(workload, fmt::format("replay{}{} --plan {}", on_device(), safety, plan));
  }

  Status tell(const analyzer::Workload& workload, const plan::Plan& plan, const analyzer::PlanSummary& summary,
              const analyzer::PlanOptions& options, const std::string& output) const {
    if (!summary.refusal.ok()) {
      say(fmt::format("{}: a defect in Reprise: {}; a simpler plan was made, which is safe; please report this", output,
                      summary.refusal.message()));
    }
    const std::string link = report::assumed_link(plan.link, arguments_.trace, workload.recorded);
    if (!link.empty() && !arguments_.quiet) say(link);
    if (arguments_.explain)
      return write_file("-", analyzer::explain(plan, summary) + "link        " + report::words_of(plan.link, true) +
                                 "\n" + fluid_text(workload, plan, options));
    if (arguments_.quiet) return {};
    if (!arguments_.machine.empty()) say(kKernelTimesStay);
    const std::string recomputed =
        !plan::recomputes(plan) ? "" : fmt::format(", {} of it recomputed", format_duration(summary.recompute_ns));
    say(fmt::format("{}: peak {}, {} per iteration predicted ({} x computing alone){}, {} moved{}", output,
                    report::peak_words(report::planned_peak(plan), plan.peak_bytes), format_duration(plan.predicted_ns),
                    plan.compute_ns == 0
                        ? "1.00"
                        : decimal(static_cast<double>(plan.predicted_ns), static_cast<double>(plan.compute_ns), 2),
                    recomputed, format_bytes(plan.offload_bytes + plan.reload_bytes), next_with(output, workload)));
    if (has_less(report::planned_peak(plan))) {
      say(fmt::format(
          "{} takes more than the device that {} was recorded on has room for, {} of {}: for that one plan "
          "with --budget {} or less",
          output, arguments_.trace, format_bytes(room_bytes_), format_bytes(device_bytes_), typed_bytes(room_bytes_)));
    }
    if (went_on_) {
      say(report::times_of_more(arguments_.trace));
    }
    if (workload.recorded && !covers_nearly_all(workload.iteration)) {
      say(
          fmt::format("the plan is of an iteration of {} calls, which covers {}: what else the program does is managed "
                      "on demand, and may need more",
                      workload.iteration.call_count, covered(workload.iteration)));
    }
    return {};
  }

  std::string fluid_text(const analyzer::Workload& workload, const plan::Plan& plan,
                         const analyzer::PlanOptions& options) const {
    progress_.step("the fluid bound");
    analyzer::FluidOptions closeness;
    closeness.guarded = options.known.facts.has_value();
    const auto fluid = analyzer::fluid_bounds(workload, plan.budget_bytes, options.recompute, closeness);
    progress_.clear();
    return analyzer::explain(plan, fluid);
  }

  Status set_budget(analyzer::PlanOptions& options) const {
    Result<Budget> budget = parse_budget(arguments_.budget);
    if (!budget.ok()) return budget.status();
    options.budget_bytes = budget.value().bytes;
    options.budget_fraction = budget.value().percent / 100;
    if (arguments_.machine.empty()) return {};
    Result<analyzer::Machine> machine = find_machine(arguments_.machine);
    if (!machine.ok()) return machine.status();
    options.machine = machine.value();
    return {};
  }
  // "a.trace" -> "a.plan"
  std::string output_path() const {
    if (!arguments_.output.empty()) return arguments_.output;
    const std::string& trace = arguments_.trace;
    const std::string ending = ".trace";
    const bool usual = trace.size() > ending.size() && trace.substr(trace.size() - ending.size()) == ending;
    return (usual ? trace.substr(0, trace.size() - ending.size()) : trace) + ".plan";
  }
  // What went wrong with the recording.
  Status named(const Status& status) const {
    if (!cut_.line.empty()) return of_what_there_is(cut_, arguments_.trace, status);
    if (status.message().find(arguments_.trace) != std::string::npos) return status;
    return {status.code(), fmt::format("{}: {}", arguments_.trace, status.message())};
  }

  const PlanArguments& arguments_;
  mutable Progress progress_;
  CutShort cut_;
  const analyzer::Planning* planning_ = nullptr;  // while a recording is planned, not a task graph
  bool searched_ = false;                         // the trace was read: what is not found from here on is an iteration
  const char* outcome_ = nullptr;                 // that the status has, where no code says it
  bool went_on_ = false;                          // the recording did, behind the plan that its run made
  uint64_t device_bytes_ = 0;  // of the device that was recorded; 0: not known, or planned for another one
  uint64_t room_bytes_ = 0;    // ... of it, what a program gets that is alone
  bool simulated_ = false;     // recorded on the simulated device, as the plan will be replayed
  uint64_t until_ = 0;         // what was read was called before
  uint64_t minimum_bytes_ = 0;
  std::string minimum_because_;
  std::string disassembler_;
};

}  // namespace

Action declare_plan(CLI::App& app, const ProgramArguments&) {
  auto arguments = std::make_shared<PlanArguments>();
  app.add_option("trace", arguments->trace, "The recorded trace, or a task graph (.json, .json.zst)")->required();
  app.add_option("--budget", arguments->budget, "Device memory to stay within, as in 12GiB or 50% of the peak")
      ->required();
  app.add_option("-o,--output", arguments->output,
                 "The plan to write (default: beside the trace, a.plan or a-2.plan and so on where there is one)");
  app.add_option("--from", arguments->asked.from, "Only of what was called from this call number on");
  app.add_option("--until", arguments->asked.until, "Only of what was called before this call number");
  app.add_option("--sizes", arguments->asked.sizes,
                 "An iteration whose sizes vary, and how large its tensors have to be at least: a file with the "
                 "number of an allocation in the trace and bytes on each line");
  app.add_option("--calls", arguments->asked.calls,
                 "Only iterations of at least this many calls, however little they cover");
  app.add_option(
      "--share", arguments->asked.share,
      "Only an iteration that covers at least this much of the recorded device time, in % (default: 2, and of "
      "more than one call; 0: whatever repeats)");
  app.add_flag(
      "--best-start", arguments->asked.best_start,
      "Only an iteration that begins where least is alive, not one that could do so once it is recorded again");
  app.add_flag("--first", arguments->asked.first,
               "Plan at once where auto or reprise take a while: what they find later is better");
  app.add_flag("--nice", arguments->asked.nice, "Let other programs have the processors first");
  name_values(app.add_option("--policy", arguments->policy, "How to plan: auto tries all and takes the best"), "POLICY",
              analyzer::known_policies());
  app.add_option("--safety", arguments->safety,
                 "That the plan will run with: strict, proven (default), audited or trusted")
      ->check(CLI::IsMember({"strict", "proven", "audited", "trusted"}));
  name_values(
      app.add_option("--machine", arguments->machine,
                     "Plan for the memory and links of one of these, or of a machine file; kernel times stay as "
                     "recorded"),
      "MACHINE", machine_names());
  app.add_flag("--no-recompute", arguments->no_recompute,
               "Recompute nothing to save memory; for strict safety nothing is, anyway");
  app.add_option("--facts", arguments->facts,
                 "What is known of a trace's kernels (default: REPRISE_FACTS, or the cache folder)");
  app.add_option("--nvdisasm", arguments->nvdisasm,
                 "By what kernels' code is read, or none (default: REPRISE_NVDISASM, or where it is found)");
  app.add_flag("--no-facts", arguments->no_facts, "Use none of it: kernels read and write all that they are given");
  app.add_flag("--explain", arguments->explain, "Print what was found and how far the plan is from the bounds");
  app.add_flag("--quiet", arguments->quiet, "Say nothing but errors");
  app.add_option("--status", arguments->status, "Also write the outcome to this file, as one line of JSON");
  return [arguments] { return PlanCommand(*arguments).run(); };
}

}  // namespace reprise::tools
