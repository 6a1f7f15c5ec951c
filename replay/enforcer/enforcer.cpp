#include "replay/enforcer/enforcer.h"

#include <new>

#include "analyzer/plan/plan.h"
#include "preload/base/causes.h"
#include "preload/calls/enforcer_factory.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kFinishMilliseconds = 20'000;

}  // namespace

EnforcerParts::EnforcerParts(const Config& settings, Recorder* recorder) noexcept
    : config_(settings), recorder_(recorder) {
  // The launcher has removed an older one, and each program that this one starts has its lines there, too.
  const bool launched = config_.launched() && !config_.audit;
  common_.run_log.open(config_.run_log, launched ? RunLogWriter::Others::write_there : RunLogWriter::Others::none);
}

Enforcer::Enforcer(const Config& settings, Recorder* recorder) noexcept
    : EnforcerParts(settings, recorder), Handler(&order_, &memory_) {}

// Exit handlers that were registered before ours still call: they are served as before, on demand, and only the run log
// ends. Where the dispatcher does not come to an end, there is nobody to serve them.
void Enforcer::finish() noexcept {
  Session* const session = sessions_.now();
  if (session == nullptr) {
    Session* const last = sessions_.last();
    if (sessions_.state() == Sessions::State::closed && last == nullptr) {
      // A thread may ask just now.
      const std::unique_lock<std::mutex> lock = sessions_.try_lock();
      if (!lock.owns_lock() || sessions_.state() != Sessions::State::closed) return common_.run_log.flush();
      return report_.never_opened();
    }
    report_.say_what_failed(nullptr);
    return sessions_.context_ended() ? report_.end(nullptr, *last) : common_.run_log.flush();
  }
  if (session->dispatcher().wait_settled(kFinishMilliseconds)) {
    session->orders().run_errand(Errand::leave_plan, phrase<Cause::program_ended>());
  } else {
    sessions_.give_up();
  }
  collect_activity(recorder_, common_);
  report_.say_what_failed(session);
  report_.end(sessions_.now(), *session);
}

void Enforcer::abandon() noexcept {
  sessions_.give_up();
  common_.run_log.abandon();
}

}  // namespace reprise::replay

reprise::Handler* reprise::make_enforcer(const Config& config, Recorder* recorder) noexcept {
  Config settings = config;
  if (settings.plan != nullptr) {
    const Result<plan::Plan> plan = plan::read_plan(settings.plan);
    if (!plan.ok() && !settings.budget.given()) {
      say<Cause::plan_unreadable>(plan.status().message());
      return nullptr;
    }
    if (plan.ok()) settings.plan_chunk_bytes = plan.value().chunk_bytes;
    if (!settings.budget.given()) settings.budget.bytes = plan.value().budget_bytes;  // as `reprise replay` does
  }
  auto* const enforcer = new (std::nothrow) replay::Enforcer(settings, recorder);
  if (enforcer == nullptr) say<Cause::no_memory_to_manage>();
  return enforcer;
}
