// How the enforcer starts and ends, what it tells the recorder and the run log, and the virtual device's size.
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "analyzer/plan/enforced.h"
#include "preload/base/causes.h"
#include "preload/base/runtime.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/driver/graph_memory.h"
#include "preload/driver/resolve.h"
#include "preload/facts/store.h"
#include "preload/files/earlier_program.h"
#include "preload/frameworks/torch_allocator.h"
#include "preload/record/command_line.h"
#include "preload/trace/identity.h"
#include "replay/enforcer/enforcer.h"
#include "replay/issue/held_memory.h"
#include "replay/memory/tiers/available.h"
#include "replay/plans/plan_words.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kLogBytes = 32u << 20;
constexpr uint64_t kFinishMilliseconds = 20'000;

uint64_t host_cap_of(const Config& config) noexcept {
  const Amount& wanted = config.host_memory;
  if (wanted.fraction > 0) {
    return static_cast<uint64_t>(static_cast<double>(available_host_memory()) * wanted.fraction);
  }
  return host_memory_cap(wanted.bytes);
}

}  // namespace

// The first allocation of the program: from here on all calls go through the command log. Called without locks.
bool Enforcer::open(CUcontext context, CUdevice device) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (state_.load() != State::closed) return managing();
  shared_.context = context;
  shared_.device = device;
  host_cap_ = host_cap_of(config_);
  if (!reopened_) find_device_observer();
  if (!reopened_) {
    shared_.activity.store(choose_activity_source(config_.activity));
    shared_.recording.store(recorder_ != nullptr && shared_.activity.load() != nullptr);
  }
  start_examining();
  CUresult result = reopened_ || shared_.command_log.open(kLogBytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t held = held_by_program(device);
  const BesideLedger& ledger = shared_.beside.of(device);
  held_before(shared_, held - std::min(held, ledger.now()) + ledger.most(), ledger.most());
  set_budget(held);
  if (result == CUDA_SUCCESS) result = dispatcher_->start(host_cap_, to_be_measured(), held);
  if (result != CUDA_SUCCESS) {
    say<Cause::not_managed>(result, dispatcher_->start_problem());
    if (!reopened_) write_not_managed(result);
    state_.store(State::off, std::memory_order_release);
    return false;
  }
  if (!reopened_) {
    tell_recorder();
    write_start();
  }
  plans_.open(fixed_budget());
  state_.store(State::open, std::memory_order_release);
  return true;
}

// What runs already may wait for the program, which waits for us.
Dispatcher::Measure Enforcer::to_be_measured() const noexcept {
  if (reopened_) return Dispatcher::Measure::nothing;
  if (recorder_ != nullptr) return Dispatcher::Measure::planning;
  return shared_.run_log.enabled() && !launched_.load() ? Dispatcher::Measure::link : Dispatcher::Measure::nothing;
}

CUresult Enforcer::context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept {
  if (!managing()) return CUDA_SUCCESS;
  if (context == shared_.context) return close(freed);
  per_thread_.forget(context);
  return run_errand(Errand::end_context, phrase<Cause::a_context_ended>(), context);
}

// Everything is given back, and the next allocation opens afresh. What is known about iterations is of another life of
// the program: from then on memory is managed on demand, or by the plan that the user gave.
CUresult Enforcer::close(void (*freed)(CUdeviceptr) noexcept) noexcept {
  const std::lock_guard lock(open_mutex_);
  if (!managing()) return CUDA_SUCCESS;
  if (const CUresult result = run_errand(Errand::close, phrase<Cause::the_context_ended>()); result != CUDA_SUCCESS)
    return result;
  dispatcher_->wait_ended();
  state_.store(State::closed, std::memory_order_release);
  per_thread_.forget(shared_.context);
  std::vector<CUdeviceptr> gone;
  for (const auto& [id, live] : follower().live().all()) gone.push_back(live.address);
  {
    const std::lock_guard submit_lock(submit_mutex_);
    before_.add(dispatcher_->memory());
    ended_ = std::exchange(dispatcher_, std::make_unique<Dispatcher>(&shared_));
    plans_.close();
    shared_.faults.clear();
    shared_.counters.requested_bytes.store(0, std::memory_order_relaxed);
    set_footprint(shared_, 0);
    shared_.context = nullptr;
    reopened_ = true;
  }
  for (const CUdeviceptr address : gone) {
    observe_freed(address, 0);
    freed(address);
  }
  return CUDA_SUCCESS;
}

void Enforcer::start_examining() noexcept {
  char name[256] = {};
  if (config_.examine != 0 || config_.audit || shared_.safety == plan::Safety::audited) identify_kernels();
  if (driver().cuDeviceGetName(name, sizeof name - 1, shared_.device) != CUDA_SUCCESS) return;
  try {
    const std::string folder = facts::folder_of_facts(config_.facts);
    const bool told = reopened_ || (config_.audit && config_.launched());  // `reprise audit` says it itself
    if (folder.empty() && !told && (config_.audit || config_.examine != 0)) {
      say<Cause::facts_unusable>(facts::why_no_facts());
    }
    if (config_.audit) return dispatcher_->audit(folder, name, config_.audit_iterations);
    dispatcher_->examine({config_.examine * uint64_t{1'000'000'000}, config_.examine_memory.bytes}, folder, name);
  } catch (...) {  // out of memory: nothing is examined
  }
}

void Enforcer::tell_recorder() noexcept {
  if (recorder_ == nullptr) return;
  ActivitySource* const activity = shared_.activity.load();
  recorder_->info("activity.source", activity != nullptr ? activity->name() : "none");
  recorder_->info("device.granularity", shared_.chunk_bytes);  // what recording found out may be missing
  recorder_->info("memory.managed", 1);                        // addresses are ours
  if (fixed_budget() != 0) recorder_->info("budget.bytes", fixed_budget());
  const LinkRates& rates = dispatcher_->link_rates();
#define REPRISE_MEASURED(field, key, ...) \
  if (rates.field > 0) recorder_->info(key, rates.field);
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
}

// Without it the log would look like one of a program that was killed.
void Enforcer::write_not_managed(CUresult result) noexcept {
  const char* const problem = dispatcher_->start_problem();
  const std::string error = words<Cause::driver_error>(result);
  RunLogLine line(run_log::not_managed::line);
  line.add(run_log::not_managed::reason, problem[0] == ':' ? std::string(problem + 2) : error);
  shared_.run_log.write(line);
}

void Enforcer::write_start() noexcept {
  char name[256] = "";
  driver().cuDeviceGetName(name, sizeof name, shared_.device);
  char command[4096];
  const std::string arguments(read_arguments(command, sizeof command));
  RunLogLine line(run_log::start::line);
  line.add(run_log::start::time_ns, started_ns_)
      .add(run_log::start::program, std::string(program_invocation_name))
      .add(run_log::start::arguments, arguments)
      .add(run_log::start::program_hash, identity_text(trace::program_identity("/proc/self/exe")))
      .add(run_log::start::driver, std::string(driver_path() != nullptr ? driver_path() : ""))
      .add(run_log::start::device, std::string(name))
      .add(run_log::start::mode, std::string(config_.plan != nullptr ? "replay" : "run"))
      .add(run_log::start::safety, std::string(config_.safety))
      .add(run_log::start::chunk_bytes, shared_.chunk_bytes)
      .add(run_log::start::host_cap_bytes, host_cap_);
  if (config_.launched()) line.add(run_log::start::run, config_.launcher);
  if (recorder_ != nullptr) line.add(run_log::start::recording, recorder_->started_ns());
  const LinkRates& rates = dispatcher_->link_rates();
  if (rates.h2d_bytes_per_s > 0) line.add(run_log::start::link_h2d_bytes_per_s, rates.h2d_bytes_per_s);
  if (rates.d2h_bytes_per_s > 0) line.add(run_log::start::link_d2h_bytes_per_s, rates.d2h_bytes_per_s);
  if (fixed_budget() != 0) line.add(run_log::start::budget_bytes, fixed_budget());
  if (config_.budget.fraction > 0) {
    line.add(run_log::start::budget_percent, static_cast<uint64_t>(std::llround(config_.budget.fraction * 100)));
  }
  shared_.run_log.write(line);
  shared_.run_log.flush();
}

// Nothing ever asked for device memory. A program that has run something is one of the run all the same; others, as
// those that only look at the devices and start programs, are told of where there is nobody else: their end has no
// start.
void Enforcer::write_unopened() noexcept {
  const std::unique_lock lock(open_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || state_.load() != State::closed) return shared_.run_log.flush();  // a thread asks just now
  const bool other_memory = shared_.beside.any();
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) == CUDA_SUCCESS) shared_.device = device;
  if (launched_.load() || other_memory) write_start();
  shared_.run_log.write_on_demand(
      run_log::on_demand::fits, other_memory ? phrase<Cause::nothing_to_manage>() : phrase<Cause::nothing_allocated>());
  say_what_failed();
  write_end();
}

void Enforcer::write_end() noexcept {
  const Counters& counters = shared_.counters;
  shared_.graphs.look_back(shared_.device);
  const bool open = managing();
  if (open && free_bytes_of(shared_.device)) look_around_ours();
  write_unmanaged();
  const uint64_t of_graphs = shared_.graphs.most_bytes();
  const bool others = open && dispatcher_->memory().outside.others();
  const uint64_t outside = outside_at_most(shared_, others);
  const uint64_t budget = known_budget(budget_of(shared_), peak_of_program(shared_), 0);
  // Its own physical chunks and what the program holds around them: only a percentage of an unknown peak can be passed,
  // and any budget by what the driver takes without a call that we see.
  const uint64_t peak = peak_used(shared_, others);
  shared_.run_log.keep_warnings(false);  // the lines below say the same
  say_above_budget(peak, budget);
  // Other threads may still call, or stand still in a call: then the log goes without it.
  const bool opened = shared_.host != nullptr;
  if (const std::unique_lock lock(submit_mutex_, std::try_to_lock); lock.owns_lock() && opened && !reopened_) {
    plans_.say_why_unplanned();
  }
  say_plan_idle();
  Moved moved = before_;
  if (managing()) moved.add(dispatcher_->memory());
  const bool planned = plans_.plans_taken() > 0;  // in whatever context
  RunLogLine line(run_log::end::line);
  if (runtime().exit_code >= 0) line.add(run_log::end::exit_code, static_cast<uint64_t>(runtime().exit_code));
  line.add(run_log::end::time_ns, RunLogWriter::now_ns())
      .add(run_log::end::iterations_planned, counters.iterations_planned.load())
      .add(run_log::end::iterations_on_demand,
           planned ? counters.loops_on_demand.load() : counters.iterations_on_demand.load())
      .add(run_log::end::iterations_unfinished, counters.loops_unfinished.load())
      .add(run_log::end::divergences, counters.divergences.load())
      .add(run_log::end::plans, plans_.plans_taken())
      .add(run_log::end::peak_device_bytes, counters.peak_device_bytes.load())
      .add(run_log::end::outside_bytes, outside)
      .add(run_log::end::peak_used_bytes, peak)
      .add(run_log::end::peak_program_bytes, peak_of_program(shared_))
      .add(run_log::end::peak_requested_bytes, counters.peak_requested_bytes.load())
      .add(run_log::end::peak_footprint_bytes, counters.peak_footprint_bytes.load())
      .add(run_log::end::budget_bytes, budget)
      .add(run_log::end::host_bytes, opened ? shared_.host->capacity() : 0)
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
  if (of_graphs != 0) line.add(run_log::end::graph_bytes, of_graphs);
  shared_.run_log.write(line);
  shared_.run_log.flush();
  shared_.run_log.abandon();
}

// "chargpt (process 123): " where the command of this program may have others, which print such lines, too.
std::string Enforcer::name_at_end() const noexcept {
  const char* const preload = getenv("LD_PRELOAD");
  const bool others = config_.launched()
                          ? is_started_by_another("REPRISE_LAUNCHER", std::to_string(config_.launcher).c_str()) ||
                                shared_.run_log.has_others(config_.run_log)
                          : preload != nullptr && is_started_by_another("LD_PRELOAD", preload);
  if (!others) return {};
  return words<Cause::name_at_end>(program_invocation_short_name, getpid());
}

// Some call got no memory, or the device failed: a line has said so.
bool Enforcer::has_told_of_failure() const noexcept {
  return shared_.counters.shortages.load() != 0 || refused_.load() || is_sticky(shared_.faults.peek());
}

// A program that ends with an error of which no line of ours has said anything.
void Enforcer::say_what_failed() noexcept {
  if (runtime().exit_code <= 0 || has_told_of_failure()) return;
  const std::string launch = dispatcher_->refused_launch();
  if (launch.empty()) return say_what_backend_lacks();
  say<Cause::launch_was_refused>(name_at_end(), runtime().exit_code, launch);
}

// What nobody has said by the time that the program ends.
void Enforcer::say_above_budget(uint64_t peak, uint64_t budget) noexcept {
  if (has_told_of_failure()) return;
  const uint64_t share = known_budget(shared_.budget, peak_of_program(shared_), 0);
  if (peak > budget && !config_.audit && say_why_above(peak, share)) return;
  if (share < budget) {
    say<Cause::budget_was_raised>(name_at_end(), share, budget);
  }
  if (plans_.why().too_little().empty()) return;
  say<Cause::was_on_demand>(name_at_end(), plans_.why().too_little());
}

// false: it is by no reason that a user can do something about.
bool Enforcer::say_why_above(uint64_t peak, uint64_t budget) noexcept {
  const Counters& counters = shared_.counters;
  const std::string name = name_at_end();
  const char* const unplanned = plans_.why().too_little().empty() ? "" : phrase<Cause::nothing_planned>();
  const uint64_t least = std::max(peak, counters.least_budget_bytes.load());
  const uint64_t outside = counters.most_outside.load();
  if (const uint64_t of_graphs = shared_.graphs.most_bytes(); of_graphs != 0) {
    say<Cause::used_by_graphs>(name, peak, budget, of_graphs, unplanned, least);
  } else if (peak == counters.held_before.load()) {
    say<Cause::used_before>(name, peak, budget, unplanned, least);
  } else if (outside != 0 && (fixed_budget() != 0 || counters.most_held.load() != 0)) {
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
void Enforcer::say_plan_idle() noexcept {
  if (plans_.why().given_plan_idle().empty() || config_.launched() || shared_.counters.iterations_planned.load() != 0)
    return;
  if (!plans_.why().how_it_gets_room().empty()) {
    say<Cause::plan_had_no_room>(name_at_end(), config_.plan, plans_.why().given_plan_idle(),
                                 plans_.why().how_it_gets_room());
  } else {
    say<Cause::plan_never_applied>(name_at_end(), config_.plan, plans_.why().given_plan_idle());
  }
}

// While the dispatcher works, what is free changes by our own chunks: then nothing is counted. Before memory is managed
// there are none.
Handler::BeforeTaking Enforcer::before_taking() noexcept {
  CUdevice device = 0;
  const uint64_t submitted = shared_.command_log.tail();
  const State state = state_.load(std::memory_order_acquire);
  const bool quiet = state == State::closed || (state == State::open && shared_.command_log.head() == submitted);
  if (!quiet || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  if (state == State::open && device != shared_.device) return {};
  return {look_before_call(device, graph_bytes(device)), submitted};
}

void Enforcer::after_taking(const BeforeTaking& before) noexcept {
  CUdevice device = 0;
  if (before.look.free == 0 || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
  const TakenByCall taken = taken_by_call(before.look, device, graph_bytes(device));
  if (taken.bytes == 0) return;
  if (state_.load(std::memory_order_acquire) == State::closed) {
    taken_before_[BesideLedgers::index(device)].fetch_add(taken.bytes);
    return;
  }
  if (!managing() || shared_.command_log.tail() != before.submitted) return;
  shared_.counters.given_bytes.fetch_add(taken.bytes, std::memory_order_relaxed);
  look_around_ours();
}

void Enforcer::graph_memory(uint32_t instantiated) noexcept {
  shared_.graphs.instantiated(instantiated);
  if (managing() && free_bytes_of(shared_.device)) look_at_graphs(shared_, dispatcher_->memory());
}

// Exit handlers that were registered before ours still call: they are served as before, on demand, and only the run log
// ends. Where the dispatcher does not come to an end, there is nobody to serve them.
void Enforcer::finish() noexcept {
  if (!managing()) {
    if (state_.load() == State::closed && !reopened_) return write_unopened();
    say_what_failed();
    if (reopened_) return write_end();  // the program has ended its context itself
    shared_.run_log.flush();
    return;
  }
  if (dispatcher_->wait_settled(kFinishMilliseconds)) {
    run_errand(Errand::leave_plan, phrase<Cause::program_ended>());
  } else {
    state_.store(State::off);
  }
  collect_activity(recorder_, shared_);
  say_what_failed();
  write_end();
}

void Enforcer::abandon() noexcept {
  state_.store(State::off);
  shared_.run_log.abandon();
}

}  // namespace reprise::replay
