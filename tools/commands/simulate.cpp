// `reprise simulate`: what budgets cost, on a machine of one's choice, without running anything.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "analyzer/planner/fluid_bounds.h"
#include "analyzer/planner/planner.h"
#include "analyzer/planner/to_plan.h"
#include "analyzer/policies/policy.h"
#include "preload/base/readable.h"
#include "tools/cli/budget_range.h"
#include "tools/cli/colour.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/commands/knowledge.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"
#include "tools/lab/simulate/disturbance.h"
#include "tools/lab/simulate/page.h"
#include "tools/lab/simulate/recommend.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

constexpr uint64_t kSmallestChunk = 4096;
constexpr char kUsualBudgets[] = "100%..40%:10%";

struct SimulateArguments {
  std::string input;
  std::string budget;
  std::string slowdown;
  std::string policies = "auto";
  std::string machine;
  std::string csv;
  std::string html;
  std::string chunk_bytes;
  std::string safety = plan::name_of(plan::kDefaultSafety);
  std::string facts;
  bool no_facts = false;
  bool no_recompute = false;
  bool no_fluid = false;
  uint32_t segments = analyzer::FluidOptions().segments;
  bool reorder = false;
  bool no_reorder = false;  // as it is without --reorder
  bool split_tensors = false;
  bool no_split_tensors = false;
  bool ssd = false;
  bool no_ssd = false;  // as it is without --ssd
  DisturbanceArguments disturbance;
};

class Simulating {
 public:
  explicit Simulating(const SimulateArguments& arguments) : arguments_(arguments), progress_(true) {}

  int run() {
    Status status = prepare();
    if (status.ok()) status = fill();
    progress_.clear();
    if (!status.ok()) return fail(of_what_there_is(cut_, arguments_.input, status));
    if (!arguments_.csv.empty()) status = write_file(arguments_.csv, to_csv(rows_));
    if (status.ok() && !arguments_.html.empty()) {
      status = write_file(arguments_.html, to_page(rows_, title(), arguments_.machine, assumed_link()));
    }
    if (status.ok() && !arguments_.machine.empty()) say(kKernelTimesStay);
    if (status.ok() && workload_.machine.link_assumed) say(assumed_link());
    if (status.ok() && went_on_) {
      say(report::times_of_more(arguments_.input));
    }
    if (status.ok()) tell_what_is_known();
    const std::string choice = recommend(rows_, slowdown_);
    if (status.ok() && !(choice + part()).empty())
      say(choice + (choice.empty() || part().empty() ? "" : "; ") + part());
    return status.ok() ? finish_cut_short(cut_) : fail(status);
  }

 private:
  // Rows come as they are ready, but none before one has a plan: where none has, there is no table, only an error.
  Status show_rows() {
    const auto feasible = [](const SimulatedRow& row) { return row.trouble.empty(); };
    if (shown_ == 0 && std::none_of(rows_.begin(), rows_.end(), feasible)) return {};
    progress_.clear();
    std::string text;
    if (shown_ == 0) text = painted(table_head(columns_), Colour::bold, has_colours(STDOUT_FILENO)) + "\n";
    for (; shown_ < rows_.size(); ++shown_) text += table_row(rows_[shown_], columns_, told_);
    return write_file("-", text);
  }

  std::string assumed_link() const {
    return report::assumed_link(analyzer::link_of(workload_.machine), arguments_.input, workload_.recorded);
  }

  // Of a trace: how much the plans rest on facts.
  void tell_what_is_known() const {
    if (is_graph_path(arguments_.input)) return;
    uint64_t all = 0;
    uint64_t known = 0;
    for (const analyzer::GraphCall& entry : workload_.graph.calls) {
      if (entry.call.op != trace::OpKind::launch) continue;
      all += entry.call.duration_ns;
      if (entry.known) known += entry.call.duration_ns;
    }
    if (known == all) return;
    say(fmt::format(
        "what kernels do is known for {} % of the computing; the others are taken to read and write all that they "
        "are given, and are not computed again: `reprise run --examine 60 ...` finds out",
        decimal(100 * static_cast<double>(known), static_cast<double>(all), 0)));
  }

  // Where what was planned is not nearly all that the program does: that, and how much it is.
  std::string part() const {
    if (!workload_.recorded || covers_nearly_all(workload_.iteration)) return {};
    return fmt::format("all of this is of an iteration of {} calls, which covers {}: the rest may need more",
                       workload_.iteration.call_count, covered(workload_.iteration));
  }

  // What the graph is called, or the file.
  const std::string& title() const {
    return workload_.graph.program.empty() ? arguments_.input : workload_.graph.program;
  }

  Status prepare() {
    if (Status status = read_budgets(); !status.ok()) return status;
    if (Status status = list_policies(); !status.ok()) return status;
    if (!arguments_.machine.empty()) {
      Result<analyzer::Machine> machine = find_machine(arguments_.machine);
      if (!machine.ok()) return machine.status();
      options_.machine = machine.value();
    }
    if (!arguments_.chunk_bytes.empty()) {
      Result<uint64_t> chunk = parse_size(arguments_.chunk_bytes);
      if (!chunk.ok()) return chunk.status();
      if (chunk.value() < kSmallestChunk) return {StatusCode::invalid_argument, "--chunk-bytes: at least 4KiB"};
      options_.chunk_bytes = chunk.value();
    }
    const bool is_graph = is_graph_path(arguments_.input);
    set_knowledge({arguments_.safety, arguments_.facts, arguments_.no_facts, arguments_.no_recompute, "",
                   arguments_.ssd && !arguments_.no_ssd},
                  is_graph, options_);
    options_.reorder = arguments_.reorder && !arguments_.no_reorder;
    // Of a trace, what a run does (decisions 0013 and 0014); of a graph, what could be done.
    options_.split_tensors = (is_graph || arguments_.split_tensors) && !arguments_.no_split_tensors;
    Result<std::vector<analyzer::SimulationOptions>> trials = trials_of(arguments_.disturbance);
    if (!trials.ok()) return trials.status();
    options_.trials = std::move(trials.value());
    Outputs outputs;
    outputs.reads(arguments_.input).reads(arguments_.machine);
    outputs.writes("--csv", arguments_.csv).writes("--html", arguments_.html);
    if (Status status = outputs.check(); !status.ok()) return status;
    return load();
  }

  Status read_budgets() {
    if (!arguments_.slowdown.empty()) {
      Result<Budget> slowdown = parse_budget(arguments_.slowdown, "--slowdown");
      if (!slowdown.ok()) return slowdown.status();
      if (slowdown.value().bytes != 0) return {StatusCode::invalid_argument, "--slowdown: a percentage, as in 5%"};
      slowdown_ = slowdown.value().percent / 100;
    }
    if (slowdown_ && arguments_.budget.empty()) return {};  // search() finds some
    Result<std::vector<Budget>> budgets =
        parse_budgets(arguments_.budget.empty() ? kUsualBudgets : arguments_.budget.c_str());
    if (!budgets.ok()) return budgets.status();
    budgets_ = std::move(budgets.value());
    return {};
  }

  // "all", or names separated by commas.
  Status list_policies() {
    if (arguments_.policies == "all") {
      for (const auto* list : {&analyzer::all_policies(), &analyzer::baseline_policies()}) {
        for (const analyzer::Policy* policy : *list) policies_.emplace_back(policy->name());
      }
      policies_.emplace_back("auto");
      return {};
    }
    for (const std::string& name : CLI::detail::split(arguments_.policies, ',')) {
      if (Status status = analyzer::check_policy(name); !status.ok()) return status;
      policies_.push_back(name);
    }
    return {};
  }

  Status load() {
    progress_.step("reading " + arguments_.input);
    if (is_graph_path(arguments_.input)) {
      Result<analyzer::TaskGraph> graph =
          read_graph(arguments_.input, options_.chunk_bytes != 0 ? options_.chunk_bytes : kGraphChunk);
      if (!graph.ok()) return graph.status();
      return take(analyzer::make_workload(std::move(graph.value()), options_));
    }
    Result<trace::Trace> trace = load_trace(arguments_.input);
    if (!trace.ok()) return trace.status();
    cut_ = cut_short(arguments_.input, trace.value());
    went_on_ = !trace.value().pauses.empty();
    return take(analyzer::Planning(trace.value(), options_).workload());
  }

  Status take(Result<analyzer::Workload> workload) {
    if (!workload.ok()) {
      return {workload.status().code(), fmt::format("{}: {}", arguments_.input, workload.status().message())};
    }
    workload_ = std::move(workload.value());
    columns_.fluid = !arguments_.no_fluid && analyzer::has_fluid_bound(workload_);
    columns_.joint = !arguments_.no_fluid && analyzer::has_joint_bound(workload_, options_.recompute);
    columns_.ssd = arguments_.ssd && !arguments_.no_ssd;
    columns_.disturbed = !options_.trials.empty();
    return {};
  }

  Status fill() {
    const bool searching = budgets_.empty();
    if (searching) {
      if (Status status = search(); !status.ok()) return status;
    }
    for (const Budget& budget : budgets_) {
      if (Status status = fill(budget, budgets_.size() * policies_.size()); !status.ok()) return status;
      if (Status status = show_rows(); !status.ok()) return status;
    }
    if (searching) {
      std::sort(rows_.begin(), rows_.end(), [](const SimulatedRow& one, const SimulatedRow& other) {
        return one.budget_bytes > other.budget_bytes;
      });
      if (Status status = show_rows(); !status.ok()) return status;
    }
    if (shown_ > 0) return {};
    return {StatusCode::infeasible, fmt::format("{}: {}", arguments_.input, rows_.front().trouble)};
  }

  Status fill(const Budget& budget, uint64_t total) {
    progress_.step("the bounds of a budget", rows_.size(), total);
    const analyzer::FluidBounds fluid = bounds_of(budget);
    for (const std::string& policy : policies_) {
      progress_.step("planning with " + policy, rows_.size(), total);
      Result<SimulatedRow> row = simulate(budget, policy);
      if (!row.ok()) return row.status();
      row.value().fluid_ns = fluid.offload_ns;
      row.value().joint_ns = fluid.joint_ns;
      rows_.push_back(std::move(row.value()));
    }
    return {};
  }

  // Whole percentages, halving, for a smaller budget is hardly ever faster.
  Status search() {
    int too_slow = 0;
    int fast_enough = 101;
    for (int percent = 100; fast_enough - too_slow > 1; percent = (too_slow + fast_enough) / 2) {
      const size_t first = rows_.size();
      if (Status status = fill({0, static_cast<double>(percent)}, first + policies_.size()); !status.ok())
        return status;
      const bool within = std::any_of(rows_.begin() + static_cast<std::ptrdiff_t>(first), rows_.end(),
                                      [this](const SimulatedRow& row) { return is_within(row, *slowdown_); });
      (within ? fast_enough : too_slow) = percent;
    }
    return {};
  }

  uint64_t bytes_of(const Budget& budget) const {
    if (budget.bytes > 0) return budget.bytes;
    return analyzer::share_of_peak(workload_, budget.percent / 100);
  }

  // Are there two sizes among the budgets that differ, and do not where they are rounded, and is this one of them?
  bool reads_as_another(const Budget& budget) const {
    const auto alike = [&budget](const Budget& other) {
      return other.bytes > 0 && other.bytes != budget.bytes && format_bytes(other.bytes) == format_bytes(budget.bytes);
    };
    return budget.bytes > 0 && std::any_of(budgets_.begin(), budgets_.end(), alike);
  }

  analyzer::FluidBounds bounds_of(const Budget& budget) {
    const uint64_t bytes = analyzer::budget_as_run(workload_, bytes_of(budget));
    if (arguments_.no_fluid || bytes < workload_.minimum_bytes) return {};
    analyzer::FluidOptions closeness;
    closeness.segments = arguments_.segments;
    closeness.guarded = options_.known.facts.has_value();
    // The time for a linear program grows with about the third power of its size.
    const double more = std::max(1.0, static_cast<double>(closeness.segments) / analyzer::FluidOptions().segments);
    closeness.seconds *= more * more * more;
    return analyzer::fluid_bounds(workload_, bytes, options_.recompute, closeness);
  }

  Result<SimulatedRow> simulate(const Budget& budget, const std::string& policy) {
    analyzer::PlanOptions options = options_;
    options.policy = policy;
    SimulatedRow row;
    row.asked = budget;
    row.policy = policy;
    row.budget_bytes = bytes_of(budget);
    row.to_the_byte = reads_as_another(budget);
    options.budget_bytes = analyzer::budget_as_run(workload_, row.budget_bytes);
    analyzer::PlanSummary summary;
    const auto start = std::chrono::steady_clock::now();
    const Result<plan::Plan> plan = analyzer::make_plan(workload_, options, &summary);
    const auto took = std::chrono::steady_clock::now() - start;
    row.planning_ns = static_cast<uint64_t>(std::chrono::nanoseconds(took).count());
    if (!plan.ok()) {
      if (plan.status().code() != StatusCode::infeasible) return plan.status();
      row.trouble = plan.status().message();
      return row;
    }
    fill_row(plan.value(), summary, row);
    row.ssd_years = analyzer::ssd_years(workload_.machine, row.ssd_written_bytes, row.time_ns);
    return row;
  }

  static void fill_row(const plan::Plan& plan, const analyzer::PlanSummary& summary, SimulatedRow& row) {
    row.used = plan.policy;
    row.time_ns = row.planned_ns = row.slowest_ns = plan.predicted_ns;
    if (!summary.trial_ns.empty()) {
      row.time_ns =
          std::accumulate(summary.trial_ns.begin(), summary.trial_ns.end(), uint64_t{0}) / summary.trial_ns.size();
      row.slowest_ns = *std::max_element(summary.trial_ns.begin(), summary.trial_ns.end());
    }
    row.compute_ns = plan.compute_ns;
    row.bound_ns = summary.bounds.iteration_ns;
    row.offload_bytes = plan.offload_bytes;
    row.reload_bytes = plan.reload_bytes;
    row.remap_count = plan.remap_count;
    row.ssd_written_bytes = summary.tiers.ssd_written_bytes;
    row.ssd_read_bytes = summary.tiers.ssd_read_bytes;
    row.host_peak_bytes = summary.tiers.host_peak_bytes;
  }

  const SimulateArguments& arguments_;
  Progress progress_;
  analyzer::PlanOptions options_;
  std::vector<Budget> budgets_;  // none: search() looks for one
  std::optional<double> slowdown_;
  std::vector<std::string> policies_;
  CutShort cut_;
  bool went_on_ = false;  // the recording did, behind the plan that its run made
  analyzer::Workload workload_;
  std::vector<SimulatedRow> rows_;
  Columns columns_;
  size_t shown_ = 0;  // of the rows
  std::set<std::string> told_;
};

// What options were called before this release: still accepted, not in the help.
void declare_old_names(CLI::App& app, SimulateArguments& arguments) {
  app.add_flag("--keep-order,--no-reorder", arguments.no_reorder)->group("");
  app.add_flag("--no-ssd", arguments.no_ssd)->group("");
  app.add_flag("--whole-tensors", arguments.no_split_tensors)->group("");
  app.add_option("--chunk", arguments.chunk_bytes)->group("");
}

}  // namespace

Action declare_simulate(CLI::App& app, const ProgramArguments&) {
  auto arguments = std::make_shared<SimulateArguments>();
  app.add_option("input", arguments->input, "A recorded trace, or a task graph (.json, .json.zst)")->required();
  app.add_option("--budget", arguments->budget,
                 "Budgets, as in 12GiB,16GiB or 30%..100%:5% of the peak (default: 100%..40%:10%)");
  app.add_option("--slowdown", arguments->slowdown,
                 "Name the smallest budget with which an iteration takes at most so much longer than computing alone, "
                 "as in 5%; without --budget, look for it");
  std::vector<std::string> policies = analyzer::known_policies();
  policies.emplace_back("all");
  name_values(app.add_option("--policy", arguments->policies, "Names with commas; auto: the best of all"), "POLICY",
              policies);
  name_values(app.add_option("--machine", arguments->machine,
                             "Memory and links of one of these, or of a machine file (default: the trace's); kernel "
                             "times stay as recorded"),
              "MACHINE", machine_names());
  app.add_option("--csv", arguments->csv, "Also write the rows to this file");
  app.add_option("--html", arguments->html, "Also write a page with curves of time and bytes over budgets");
  app.add_flag("--no-recompute", arguments->no_recompute, "reprise and auto recompute nothing to save memory");
  app.add_flag("--reorder", arguments->reorder,
               "reprise and auto run an optimizer's kernels right behind their gradients, which no replay does yet");
  app.add_flag("--split-tensors", arguments->split_tensors,
               "reprise and auto split large tensors, also of a trace, which no replay does yet");
  app.add_flag("--no-split-tensors", arguments->no_split_tensors, "... and none, also of a task graph");
  app.add_flag("--ssd", arguments->ssd,
               "Where the host's memory is full, use the machine's SSD, which no replay does yet");
  app.add_flag("--no-fluid", arguments->no_fluid, "Leave out the bounds by linear program, which take seconds");
  app.add_option("--segments", arguments->segments,
                 "Places where those bounds look at memory: with more they are closer and take longer")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--chunk-bytes", arguments->chunk_bytes, "Size of a chunk (default: the trace's, else 2MiB)");
  app.add_option("--safety", arguments->safety,
                 "Of plans for a trace: strict, proven (default), as runs have it, audited or trusted")
      ->check(CLI::IsMember({"strict", "proven", "audited", "trusted"}));
  app.add_option("--facts", arguments->facts,
                 "What is known of a trace's kernels (default: REPRISE_FACTS, or the cache folder)");
  app.add_flag("--no-facts", arguments->no_facts, "Use none of it: kernels read and write all that they are given");
  declare_disturbance(app, arguments->disturbance);
  declare_old_names(app, *arguments);
  app.footer(
      "Columns: time of an iteration; how much slower than computing alone it is, and would have to be: at best, with "
      "any plan; fluid, with any that keeps the order of the kernels and recomputes nothing; joint, with any that "
      "keeps the order and launches no kernel more than twice; out and in: bytes copied to the host and back in an "
      "iteration; SSD: written in an iteration, and how long the drive lasts.");
  return [arguments] { return Simulating(*arguments).run(); };
}

}  // namespace reprise::tools
