// `reprise audit`: runs the program as a process that may be lost, in which a launch finds nothing mapped but what it
// is known to touch, and starts it again after each fault. What is learnt of kernels is kept (`reprise facts`), and is
// what
// --safety audited goes by.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "preload/facts/store.h"
#include "preload/trace/names.h"
#include "tools/cli/command.h"
#include "tools/cli/message.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/doctor/checks.h"
#include "tools/launch/audit_log.h"
#include "tools/launch/session.h"

namespace reprise::tools {
namespace {

struct AuditOptions {
  SessionOptions session;
  uint32_t tries = 5;
  uint32_t seconds = 0;     // of one try; 0: as long as it takes
  uint64_t iterations = 0;  // 0: until everything that comes again was seen often enough
  bool whole = false;       // to the program's own end
};

std::string short_of(const std::string& kernel) { return trace::short_name(kernel); }

std::string told(const FaultSeen& fault) {
  const std::string where =
      fault.tensor_known ? fmt::format("allocation {}, of {}, {} bytes from its start", fault.allocation,
                                       format_bytes(fault.bytes), fault.offset)
                         : std::string("memory at an address that the device does not tell, or that is in no tensor");
  const std::string kernel = short_of(fault.kernel);
  if (says(fault.cause, run_log::audit_fault::wrote)) {
    return fmt::format("{} wrote {}, by its operand at {}, which was taken to be read only: that is taken back", kernel,
                       where, fault.operand);
  }
  if (says(fault.cause, run_log::audit_fault::reached)) {
    return fmt::format("{} touched {}, which is none of its operands ({}): it stays strict", kernel, where,
                       fault.operand_known ? fmt::format("its operand at {} held an address of it", fault.operand)
                                           : std::string("none of them held an address of it"));
  }
  return fmt::format("{} touched {} while all memory was mapped: the program fails by itself", kernel, where);
}

std::string line_of(const AuditedKernel& kernel) {
  std::string outcome;
  if (says(kernel.outcome, run_log::audit::audited)) {
    outcome = "audited";
    if (kernel.guarded > 0) {
      outcome += fmt::format(", {} operand{} only read", kernel.guarded, kernel.guarded == 1 ? "" : "s");
    }
  } else if (says(kernel.outcome, run_log::audit::strayed)) {
    outcome = "not audited: it touched what none of its operands is";
  } else if (says(kernel.outcome, run_log::audit::never)) {
    outcome = "not audited: " + kernel.why;
  } else {
    outcome = fmt::format("not audited at {} of {} shapes: launched too few times",
                          kernel.shapes - kernel.audited_shapes, kernel.shapes);
  }
  return fmt::format("{:>9} {:>7}  {}  {}", kernel.launches, kernel.shapes, short_of(kernel.kernel), outcome);
}

class Audit {
 public:
  Audit(const AuditOptions& options, Settings settings, const ProgramArguments& program)
      : options_(options), settings_(std::move(settings)), program_(program) {
    settings_.audit = true;
    settings_.audit_iterations = options.iterations;
    settings_.budget.percent = 100;
  }

  int run() {
    say(fmt::format(
        "audit: the program is run up to {} {}, and does each time what it does, its files among it; after a fault it "
        "is ended and run again",
        options_.tries, options_.tries == 1 ? "time" : "times"));
    for (uint32_t number = 1; number <= options_.tries; ++number) {
      Result<AuditLog> log = AuditLog::create();
      if (!log.ok()) return fail(log.status());
      Result<Outcome> outcome = one_try(log.value());
      if (!outcome.ok()) return fail(outcome.status());
      if (!log.value().faults().empty()) {
        const FaultSeen& fault = log.value().faults().front();
        say(fmt::format("audit, run {}: {}", number, told(fault)));
        if (says(fault.cause, run_log::audit_fault::itself)) return end(log.value(), kExitFailure);
        if (number == options_.tries) {
          say("audit: not at its end: more runs are needed, add --tries; what was found is kept");
          return end(log.value(), kExitFailure);
        }
        continue;
      }
      return ended(log.value(), outcome.value());
    }
    return kExitFailure;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result<Outcome> one_try(AuditLog& log) {
    settings_.run_log = log.path();
    timed_out_ = false;
    const auto until = Clock::now() + std::chrono::seconds(options_.seconds);
    Result<Outcome> outcome = run_program(settings_, program_, [&] {
      log.read();
      timed_out_ = options_.seconds != 0 && Clock::now() > until;
      return !log.faults().empty() || (log.enough() && !options_.whole) || timed_out_;
    });
    log.read();
    return outcome;
  }

  int ended(const AuditLog& log, const Outcome& outcome) const {
    if (log.not_managed()) {
      say("audit: device memory could not be managed, so nothing was audited");
      return kExitFailure;
    }
    if (!log.started()) {
      say(timed_out_
              ? fmt::format("audit: the program was ended after {} s, before it allocated device memory: give it "
                            "more time (--seconds)",
                            options_.seconds)
              : "audit: the program has allocated no device memory: there is nothing to audit");
      return kExitFailure;
    }
    if (timed_out_) {
      say(fmt::format("audit: the program was ended after {} s", options_.seconds));
    } else if (outcome.ended) {
      say(fmt::format("audit: the program was ended after {} launches: nothing new came", log.launches()));
    } else if (outcome.signal != 0 || outcome.exit_code != 0) {
      say(fmt::format("audit: the program failed ({} {}), without a fault of a kernel; run it without an audit",
                      outcome.signal != 0 ? "signal" : "exit code",
                      outcome.signal != 0 ? outcome.signal : outcome.exit_code));
      return end(log, kExitFailure);
    }
    return end(log, 0);
  }

  int end(const AuditLog& log, int code) const {
    if (log.kernels().empty()) return code;
    say("audit: launches  shapes  kernel");
    uint64_t audited = 0;
    bool kept = true;
    for (const AuditedKernel& kernel : log.kernels()) {
      say(line_of(kernel));
      kept = kept && kernel.kept;
      if (says(kernel.outcome, run_log::audit::audited)) ++audited;
    }
    say(fmt::format("audit: {} of {} kernels audited{}", audited, log.kernels().size(),
                    kept ? "; next: reprise run --safety audited" : ""));
    return code;
  }

  const AuditOptions& options_;
  Settings settings_;
  const ProgramArguments& program_;
  bool timed_out_ = false;
};

int run_audit(AuditOptions& options, const ProgramArguments& program) {
  Result<Settings> checked = check_session(options.session, program);
  if (!checked.ok()) return fail(checked.status());
  say_without_driver(checked.value().device == "sim");
  if (facts::folder_of_facts(std::getenv("REPRISE_FACTS")).empty()) say(facts::why_no_facts());
  return Audit(options, std::move(checked.value()), program).run();
}

}  // namespace

Action declare_audit(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<AuditOptions>();
  app.add_option("--tries", options->tries, "Runs at most: each fault costs one (default 5)")
      ->check(CLI::Range(1u, 1000u));
  auto* iterations = app.add_option("--iterations", options->iterations,
                                    "End the program after so many iterations (default: when all that comes again was "
                                    "seen often enough, and nothing new comes)");
  app.add_option("--seconds", options->seconds, "End a run after this time at the latest");
  app.add_flag("--whole", options->whole, "Let each run come to the program's own end")->excludes(iterations);
  add_device_options(app, options->session);
  app.footer("As in: reprise audit [options] -- program arguments...");
  return [options, &program] { return run_audit(*options, program); };
}

}  // namespace reprise::tools
