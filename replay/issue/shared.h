// What program threads and the dispatcher share of one managed device: the queue between them, the device's addresses,
// and its plans. Made by the session, and gone with it; the program's and the account's part outlive it.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "preload/landing/landing.h"
#include "replay/base/fair_mutex.h"
#include "replay/issue/account.h"
#include "replay/issue/common.h"
#include "replay/memory/addresses/ranges.h"
#include "replay/memory/tiers/host.h"
#include "replay/plan/plan_index.h"
#include "replay/queue/command_log.h"
#include "replay/queue/events.h"
#include "replay/queue/faults.h"
#include "replay/queue/staging.h"

namespace reprise::replay {

// Plans of one session: each is looked at where one may begin, and has its part of the arena. Two of a loop: the first
// one, and the one that takes its place.
inline constexpr uint32_t kMostPlans = 128;

// Words that one thread leaves for another, off the hot path.
class Note {
 public:
  void set(const std::string& text) noexcept {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  std::string get() const noexcept {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// The program's calls on their way to the dispatcher, and what comes back.
struct CallQueue {
  FairMutex submit_mutex;  // the submission lock
  CommandLog command_log;
  Events events;
  Faults faults;
  Staging staging;
  Landing landing{ReadBack::kMostBytes};
};

// Where its memory lies, set when it begins to be managed.
struct ManagedDevice {
  CUcontext context = nullptr;
  CUdevice device = 0;
  uint64_t chunk_bytes = 0;
  uint64_t granularity = 0;  // of the driver: what the program would take without us is counted by it
  plan::Safety safety = plan::Safety::strict;
  bool strict = false;  // on demand, where audited safety is strict, too; false: trusted
  Arena arena;
  Zone arena_all;
  Addresses addresses;
  HostTier* host = nullptr;
};

// What the plan follower and the dispatcher tell each other of plans.
struct PlanBoard {
  // The plans that `activate` entries mean, by number. Each is set once by the session, before the first that means it.
  std::array<std::atomic<const PlanIndex*>, kMostPlans> plans{};
  std::array<std::atomic<bool>, kMostPlans> plan_unusable{};  // by plan: activation is impossible for good
  std::array<int, kMostPlans> refusals{};                     // by plan: how often it was in a row; the dispatcher's
  // How often the dispatcher itself has left the plan or could not enter it; the plan follower stops matching when the
  // number moves.
  std::atomic<uint64_t> dispatcher_divergences{0};
  Note refusal;  // why the plan that was to come in force last could not; empty: it could, or none was to
  std::atomic<bool> refused_for_room{false};  // ... with more memory it might have
  std::atomic<bool> facts_failed{false};      // what a plan does by facts cannot be done, or did something else
};

struct Shared : CallQueue, ManagedDevice, PlanBoard {
  Shared(Common* the_common, Account* the_account, plan::Safety wanted = plan::Safety::trusted) noexcept
      : common(*the_common), account(*the_account), counters(the_account->counters), run_log(the_common->run_log) {
    safety = wanted;
    strict = wanted != plan::Safety::trusted;
  }

  Common& common;
  Account& account;
  Counters& counters;     // the account's
  RunLogWriter& run_log;  // the program's
};

}  // namespace reprise::replay
