// What the run log, the trace and the user are told of a whole run: its start, its end, and what nobody has said by
// then. Caller: the enforcer, when memory begins to be managed and at the end.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <string>

#include "preload/base/config.h"
#include "preload/record/recorder.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"
#include "replay/session/session.h"

namespace reprise::replay {

class RunReport {
 public:
  RunReport(const Config& config, Recorder* recorder, Common* common, Account* account) noexcept
      : config_(config), recorder_(recorder), common_(*common), account_(*account) {}

  // The first session begins, or could not.
  void opened(Session& session) noexcept;
  void not_opened(Session& session, CUresult result, bool is_first) noexcept;
  // Nothing ever asked for device memory.
  void never_opened() noexcept;

  // A program that ends with an error of which no line of ours has said anything. `open`: the session that manages
  // memory, nullptr: none does any more.
  void say_what_failed(Session* open) noexcept;
  // ... `last`: the one that did last.
  void end(Session* open, Session& last) noexcept;

 private:
  void tell_recorder(Session& session) noexcept;
  void write_start(Session* session, CUdevice device) noexcept;
  void write_not_managed(Session& session, CUresult result) noexcept;
  void write_unmanaged(CUdevice device) noexcept;
  void write_end(Session* open, Session* last) noexcept;
  bool has_told_of_failure(Session* session) const noexcept;
  void say_above_budget(Session& last, uint64_t peak) noexcept;
  bool say_why_above(const char* unplanned, uint64_t peak, uint64_t budget) noexcept;
  void say_plan_idle(const WhyUnplanned& why) noexcept;
  std::string name_at_end() const noexcept;

  const Config& config_;
  Recorder* const recorder_;
  Common& common_;
  Account& account_;
};

}  // namespace reprise::replay
