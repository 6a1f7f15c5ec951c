// Plans that outlive the run that made them: a folder beside the kernel facts', $XDG_CACHE_HOME/reprise/plans, with one
// file for each plan, which any command reads as it reads a plan of the user's. Its name says which program and which
// loop it is of. Several programs may use the folder at once. Bounded: what was not used for longest leaves. Callers:
// PlanSession, and the thread on which the planner's answers are read.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/base/config.h"
#include "preload/facts/store.h"
#include "preload/trace/status.h"

namespace reprise::replay {

// What a plan is for, beside what its calls say.
struct PlanUse {
  uint64_t program = 0;  // identity of the executable
  std::string script;    // ... and where that is an interpreter, what it runs; else empty
  std::string device;
  std::string budget;  // as it was asked for: bytes, a percentage, or what is free
  std::string policy;
  plan::Safety safety = plan::Safety::strict;
  uint64_t chunk_bytes = 0;
};
uint64_t key_of(const PlanUse& use);
// The script of these arguments (argv): "" where the first word that is no option names no file.
std::string script_of(const std::vector<std::string>& arguments);
// This process under this configuration.
PlanUse use_of_process(const Config& config, plan::Safety safety, uint64_t chunk_bytes, const std::string& device);

struct KeptPlan {
  std::string path;
  plan::Plan plan;
};

struct KeptLimits {
  size_t plans_of_program = 16;
  size_t programs = 64;
  uint64_t bytes = 256ull << 20;  // in all
  uint64_t bytes_of_plan = 32ull << 20;
};

class KeptPlans {
 public:
  // `facts`: the folder with what is known of kernels.
  KeptPlans(std::string folder, std::string facts, PlanUse use, KeptLimits limits = {});

  // Those of the latest run first, in the order in which that run used them, and without such as rest on facts that are
  // not known any more. A file that cannot be read is removed, with a line in *problems.
  std::vector<KeptPlan> load(std::vector<std::string>* problems) const;
  // In the place of one of the same loop. Any thread.
  Status keep(const plan::Plan& plan);
  // This run uses it, so others leave before it. Any thread.
  void used(const std::string& path);

 private:
  std::string path_of(const plan::Plan& plan) const;
  bool facts_hold(const plan::Plan& plan) const;
  bool was_unequal(uint64_t kernel) const;
  void stamp(const std::string& path, uint64_t before_ns);
  void make_room() const;

  const std::string folder_;
  const facts::Store facts_;
  const PlanUse use_;
  const std::string prefix_;  // of the names of this program's files
  const KeptLimits limits_;
  const uint64_t started_ns_;  // CLOCK_REALTIME: files have times between this, and this less kMostOrders
  std::mutex mutex_;
  uint64_t order_ = 0;  // of those that this run used or made
};

// A plan is of the budget where it takes no more than that, and not much less.
bool is_of_budget(const plan::Plan& plan, uint64_t budget_bytes);

}  // namespace reprise::replay
