#include "replay/enforcer/run_report.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "preload/base/causes.h"
#include "preload/base/readable.h"
#include "preload/base/runtime.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/files/earlier_program.h"
#include "preload/frameworks/torch_allocator.h"
#include "preload/record/command_line.h"
#include "preload/trace/identity.h"
#include "replay/plans/plan_words.h"

namespace reprise::replay {

void RunReport::opened(Session& session) noexcept {
  tell_recorder(session);
  write_start(&session, session.shared().device);
}

void RunReport::not_opened(Session& session, CUresult result, bool is_first) noexcept {
  say<Cause::not_managed>(result, session.dispatcher().start_problem());
  if (is_first) write_not_managed(session, result);
}

void RunReport::tell_recorder(Session& session) noexcept {
  if (recorder_ == nullptr) return;
  ActivitySource* const activity = common_.activity.load();
  recorder_->info("activity.source", activity != nullptr ? activity->name() : "none");
  recorder_->info("device.granularity", session.shared().chunk_bytes);  // what recording found out may be missing
  recorder_->info("memory.managed", 1);                                 // addresses are ours
  if (account_.fixed_budget() != 0) recorder_->info("budget.bytes", account_.fixed_budget());
  const LinkRates& rates = session.dispatcher().link_rates();
#define REPRISE_MEASURED(field, key, ...) \
  if (rates.field > 0) recorder_->info(key, rates.field);
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
}

// Without it the log would look like one of a program that was killed.
void RunReport::write_not_managed(Session& session, CUresult result) noexcept {
  const char* const problem = session.dispatcher().start_problem();
  const std::string error = words<Cause::driver_error>(result);
  RunLogLine line(run_log::not_managed::line);
  line.add(run_log::not_managed::reason, problem[0] == ':' ? std::string(problem + 2) : error);
  common_.run_log.write(line);
}

void RunReport::write_start(Session* session, CUdevice device) noexcept {
  char name[256] = "";
  driver().cuDeviceGetName(name, sizeof name, device);
  char command[4096];
  const std::string arguments(read_arguments(command, sizeof command));
  RunLogLine line(run_log::start::line);
  line.add(run_log::start::time_ns, common_.started_ns)
      .add(run_log::start::program, std::string(program_invocation_name))
      .add(run_log::start::arguments, arguments)
      .add(run_log::start::program_hash, identity_text(trace::program_identity("/proc/self/exe")))
      .add(run_log::start::driver, std::string(driver_path() != nullptr ? driver_path() : ""))
      .add(run_log::start::device, std::string(name))
      .add(run_log::start::mode, std::string(config_.plan != nullptr ? "replay" : "run"))
      .add(run_log::start::safety, std::string(config_.safety))
      .add(run_log::start::chunk_bytes, session != nullptr ? session->shared().chunk_bytes : 0)
      .add(run_log::start::host_cap_bytes, session != nullptr ? session->shared().host->cap() : 0);
  if (config_.launched()) line.add(run_log::start::run, config_.launcher);
  if (recorder_ != nullptr) line.add(run_log::start::recording, recorder_->started_ns());
  const LinkRates rates = session != nullptr ? session->dispatcher().link_rates() : LinkRates{};
  if (rates.h2d_bytes_per_s > 0) line.add(run_log::start::link_h2d_bytes_per_s, rates.h2d_bytes_per_s);
  if (rates.d2h_bytes_per_s > 0) line.add(run_log::start::link_d2h_bytes_per_s, rates.d2h_bytes_per_s);
  if (account_.fixed_budget() != 0) line.add(run_log::start::budget_bytes, account_.fixed_budget());
  if (config_.budget.fraction > 0) {
    line.add(run_log::start::budget_percent, static_cast<uint64_t>(std::llround(config_.budget.fraction * 100)));
  }
  common_.run_log.write(line);
  common_.run_log.flush();
}

// A program that has run something is one of the run all the same; others, as those that only look at the devices and
// start programs, are told of where there is nobody else: their end has no start.
void RunReport::never_opened() noexcept {
  const bool other_memory = common_.beside.any();
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
  if (common_.launched.load() || other_memory) write_start(nullptr, device);
  common_.run_log.write_on_demand(
      run_log::on_demand::fits, other_memory ? phrase<Cause::nothing_to_manage>() : phrase<Cause::nothing_allocated>());
  say_what_failed(nullptr);
  account_.graphs.look_back(device);
  write_unmanaged(device);
  common_.run_log.keep_warnings(false);
  if (other_memory) account_.never_opened(device);
  const uint64_t peak = account_.peak_used(false);
  const uint64_t budget = account_.fixed_budget();
  if (budget != 0 && peak > budget && !config_.audit) say_why_above("", peak, budget);
  write_end(nullptr, nullptr);
}

void RunReport::end(Session* open, Session& last) noexcept {
  account_.graphs.look_back(last.shared().device);
  if (open != nullptr && free_bytes_of(last.shared().device)) account_.look_around(open->memory());
  write_unmanaged(last.shared().device);
  common_.run_log.keep_warnings(false);  // the lines below say the same
  const bool others = open != nullptr && open->memory().outside.others();
  say_above_budget(last, account_.peak_used(others));
  last.say_why_unplanned();
  say_plan_idle(last.plans().why());
  write_end(open, &last);
}

// One line a kind, and what is of no call; at its most each.
void RunReport::write_unmanaged(CUdevice managed) noexcept {
  const auto write = [this](const std::string& what, uint64_t count, uint64_t bytes) {
    RunLogLine line(run_log::unmanaged::line);
    line.add(run_log::unmanaged::what, what)
        .add(run_log::unmanaged::count, count)
        .add(run_log::unmanaged::bytes, bytes);
    common_.run_log.write(line);
  };
  for (size_t kind = 0; kind < kBesideKinds; ++kind) {
    BesideLedger::Figures others;
    for (CUdevice device = 0; device <= BesideLedgers::kDevices; ++device) {
      const BesideLedger::Figures row = common_.beside.of(device).figures(static_cast<BesideKind>(kind));
      if (device == managed && row.count != 0) {
        write(words_of(static_cast<BesideKind>(kind)), row.count, row.most);
      } else if (device != managed) {
        others.count += row.count;
        others.most += row.most;
      }
    }
    if (others.count != 0) {
      write(std::string(words_of(static_cast<BesideKind>(kind))) + " on another device", others.count, others.most);
    }
  }
  const uint64_t of_graphs = account_.graphs.most_bytes();
  if (of_graphs != 0) write(words_of(BesideKind::graph), account_.graphs.allocations(), of_graphs);
  if (const uint64_t own = account_.held_by_driver(); own != 0) write(kDriversOwn, 1, own);
}

void RunReport::write_end(Session* open, Session* last) noexcept {
  const Counters& counters = account_.counters;
  const bool others = open != nullptr && open->memory().outside.others();
  Moved moved = account_.moved;
  if (open != nullptr) moved.add(open->memory());
  const uint64_t plans = last != nullptr ? last->plans().why().plans_taken() : 0;  // in whatever context
  RunLogLine line(run_log::end::line);
  if (runtime().exit_code >= 0) line.add(run_log::end::exit_code, static_cast<uint64_t>(runtime().exit_code));
  line.add(run_log::end::time_ns, RunLogWriter::now_ns())
      .add(run_log::end::iterations_on_demand,
           plans > 0 ? counters.loops_on_demand.load() : counters.iterations_on_demand.load())
      .add(run_log::end::iterations_unfinished, counters.loops_unfinished.load())
      .add(run_log::end::divergences, counters.divergences.load())
      .add(run_log::end::plans, plans)
      .add(run_log::end::outside_bytes, account_.outside_at_most(others))
      .add(run_log::end::peak_used_bytes, account_.peak_used(others))
      .add(run_log::end::peak_program_bytes, account_.peak_of_program())
      .add(run_log::end::budget_bytes,
           last != nullptr ? account_.known(account_.peak_of_program()) : account_.fixed_budget())
      .add(run_log::end::host_bytes, last != nullptr ? last->memory().host.capacity() : 0)
      .add(run_log::end::offload_bytes, moved.traffic.offloaded_bytes)
      .add(run_log::end::reload_bytes, moved.traffic.reloaded_bytes)
      .add(run_log::end::spared_bytes, moved.traffic.spared_bytes)
      .add(run_log::end::dropped_bytes, moved.traffic.dropped_bytes)
      .add(run_log::end::repeated_launches, moved.traffic.repeated_launches)
      .add(run_log::end::vmm_calls, moved.vmm_calls)
      .add(run_log::end::buffers_scanned, look_counters.buffers.load())
      .add(run_log::end::buffers_scanned_bytes, look_counters.bytes.load())
      .add(run_log::end::buffers_with_addresses, look_counters.tables.load())
      .add(run_log::end::buffers_not_scanned, look_counters.not_scanned.load());
#define RUN_LOG_COUNTER(name, unit, help) line.add(run_log::end::name, counters.name.load());
#include "preload/base/run_log_keys.def"
  const uint64_t of_graphs = account_.graphs.most_bytes();
  if (of_graphs != 0) line.add(run_log::end::graph_bytes, of_graphs);
  common_.run_log.write(line);
  common_.run_log.flush();
  common_.run_log.abandon();
}

// "chargpt (process 123): " where the command of this program may have others, which print such lines, too.
std::string RunReport::name_at_end() const noexcept {
  const char* const preload = getenv("LD_PRELOAD");
  const bool others = config_.launched()
                          ? is_started_by_another("REPRISE_LAUNCHER", std::to_string(config_.launcher).c_str()) ||
                                common_.run_log.has_others(config_.run_log)
                          : preload != nullptr && is_started_by_another("LD_PRELOAD", preload);
  if (!others) return {};
  return words<Cause::name_at_end>(program_invocation_short_name, getpid());
}

// Some call got no memory, or the device failed: a line has said so.
bool RunReport::has_told_of_failure(Session* session) const noexcept {
  const bool failed = session != nullptr && is_sticky(session->shared().faults.peek());
  return failed || account_.counters.shortages.load() != 0 || account_.refused.load();
}

void RunReport::say_what_failed(Session* open) noexcept {
  if (runtime().exit_code <= 0 || has_told_of_failure(open)) return;
  const std::string launch = open != nullptr ? open->dispatcher().refused_launch() : std::string();
  if (launch.empty()) return say_what_backend_lacks();
  say<Cause::launch_was_refused>(name_at_end(), runtime().exit_code, launch);
}

// Says at the program's end that the device held more than the budget, if no line has said it. A line about a call
// without memory, or about a failed device, does not say it. A percentage is left out after such a failure: the program
// has not reached the peak that it is a share of.
void RunReport::say_above_budget(Session& last, uint64_t peak) noexcept {
  const WhyUnplanned& why = last.plans().why();
  const bool failed = has_told_of_failure(&last);
  const uint64_t budget = account_.known(account_.peak_of_program());
  const uint64_t share = budget_in_bytes(account_.budget, account_.peak_of_program(), 0);
  const bool above = peak > budget && !config_.audit && (!failed || account_.fixed_budget() != 0);
  const char* const unplanned = failed || why.too_little().empty() ? "" : phrase<Cause::nothing_planned>();
  if (above && say_why_above(unplanned, peak, share)) return;
  if (failed) return;
  if (share < budget) {
    say<Cause::budget_was_raised>(name_at_end(), share, budget);
  }
  if (why.too_little().empty()) return;
  say<Cause::was_on_demand>(name_at_end(), why.too_little());
}

// false: it is by no reason that a user can do something about.
bool RunReport::say_why_above(const char* unplanned, uint64_t peak, uint64_t budget) noexcept {
  const Counters& counters = account_.counters;
  const std::string name = name_at_end();
  const uint64_t least = std::max({peak, counters.least_budget_bytes.load(), account_.least_told.load()});
  const uint64_t outside = counters.most_outside.load();
  if (const uint64_t of_graphs = account_.graphs.most_bytes(); of_graphs != 0) {
    say<Cause::used_by_graphs>(name, peak, budget, of_graphs, unplanned, least);
  } else if (peak == counters.held_before.load()) {
    say<Cause::used_before>(name, peak, budget, unplanned, least);
  } else if (outside != 0 && (account_.fixed_budget() != 0 || counters.most_held.load() != 0)) {
    say<Cause::used_unmovable>(name, peak, budget, outside, unplanned, least);
  } else if (config_.budget.fraction > 0) {
    say<Cause::used_at_once>(name, peak, budget, unplanned, least);
  } else {
    return false;
  }
  return true;
}

// A plan that fits nothing in the program costs it nothing but speed, so that nobody would notice. Where there is a
// launcher, it says so.
void RunReport::say_plan_idle(const WhyUnplanned& why) noexcept {
  if (why.given_plan_idle().empty() || config_.launched() || account_.counters.iterations_planned.load() != 0) return;
  if (!why.how_it_gets_room().empty()) {
    say<Cause::plan_had_no_room>(name_at_end(), config_.plan, why.given_plan_idle(), why.how_it_gets_room());
  } else {
    say<Cause::plan_never_applied>(name_at_end(), config_.plan, why.given_plan_idle());
  }
}

}  // namespace reprise::replay
