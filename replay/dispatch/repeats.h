// Recompute: tensors that a plan drops without a copy, and the launches that make them again. A repeat issues the
// launch of this very iteration once more, with its own parameter bytes. Nothing is taken on trust: digests of what it
// makes are compared with those of what was dropped, and what it only reads must be the same before and after it;
// once it was, this is not looked at where the input's own drop and recompute show it (decision 0035).
// Caller: the plan executor, on the dispatcher's thread.
//
//     first time     drop: digest + copy out | repeat: launch, digests, wait: equal? consumers go : copy in, plan ends
//     proven         drop: digest            | repeat: launch, digests; consumers go; before the next op that the host
//                                              can see: equal? go on : every later call answers an error
//     plan ends      what is away is launched again on demand, and compared
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replay/dispatch/activation.h"
#include "replay/examine/examiner.h"
#include "replay/issue/shared.h"
#include "replay/progress/progress.h"

namespace reprise::replay {

class Repeats {
 public:
  Repeats(Shared* shared, ManagedMemory* memory, Pager* pager, Activation* activation, Examiner* examiner) noexcept
      : shared_(*shared), memory_(*memory), pager_(*pager), activation_(*activation), examiner_(*examiner) {}

  // The plan begins. False: it recomputes, and this device cannot compute digests.
  bool begin(const PlanIndex* plan_index) noexcept;

  // The launch that a repeat will issue again was issued: its payload is kept.
  void retain(uint32_t repeat, const Command& command) noexcept;
  const Command& launch(uint32_t repeat) const noexcept { return launches_[repeat].command; }

  const Command& launch_that_makes(uint32_t tensor) const noexcept { return launch(maker_[tensor]); }
  // The tensor may be overwritten behind *use. Its digest is computed on `lane`, which waits for its last use; copies
  // to the host that are under way do not hold it up. False, with nothing done: there is no cell for its digest now,
  // try again.
  bool drop(uint32_t tensor, LaneIndex lane, CUresult* result, LaneUse* use) noexcept;

  // Is there a cell for each of its digests?
  bool has_room(uint32_t repeat) noexcept;
  // Issues the repeat on its lane; its tensors are in place, and the lane waits for all it needs. True: its consumers
  // have to wait until advance() is done with it.
  bool issue(Instance instance, LaneIndex lane, CUresult* result, LaneUse* use) noexcept;

  // Takes in comparisons that are complete. `done` is told of each repeat that consumers wait for, with the position
  // that they have to wait for on the device. False, with one line in *why: a repeat was not like the first launch.
  bool advance(const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept;
  bool unchecked() const noexcept { return !checks_.empty(); }

  // The plan ends. First all comparisons are waited for; then, when memory is the pager's again, what is away is made
  // again. What cannot be is lost.
  bool conclude(const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept;
  void rebuild() noexcept;

 private:
  struct alignas(16) PayloadUnit {
    unsigned char bytes[16];
  };
  struct Launch {
    Command command{};
    std::vector<PayloadUnit> payload;
  };
  // Of a tensor that was dropped: what it held.
  struct Dropped {
    bool away = false;
    DigestCell cell = kNoDigest;
    bool copied = false;      // the host slot has it, too
    bool made_again = false;  // since then, by a repeat whose digest was compared, or will be
  };
  // Two digests that must be the same.
  struct DigestPair {
    uint32_t tensor = 0;
    DigestCell before = kNoDigest;
    DigestCell after = kNoDigest;
  };
  struct Check {
    Instance instance;
    uint32_t repeat = 0;
    bool waited_for = false;
    LaneUse use;
    std::vector<DigestPair> outputs;
    std::vector<DigestPair> unchanged;
  };

  bool proven(uint32_t repeat) const noexcept { return (*proofs_)[repeat]; }
  // `trusts_shown`: what shows itself (decision 0035) needs none.
  bool take_cells(uint32_t repeat, bool trusts_shown, Check* check) noexcept;
  bool shows_itself(const Repeat& again, uint32_t tensor) const noexcept;
  void give_cells_back(Check* check) noexcept;
  bool same(const DigestPair& pair) const noexcept;
  CUresult digest(uint32_t tensor, DigestCell cell, CUstream stream) noexcept;
  CUresult launch_between_digests(const Check& check, CUstream stream) noexcept;
  bool verdict(Check& check, const std::function<void(Instance, LaneUse)>& done, std::string* why) noexcept;
  bool restore(const Check& check, LaneUse* use) noexcept;
  void blame(uint32_t repeat, bool harmless, std::string* why) noexcept;
  bool rebuild(uint32_t repeat) noexcept;
  bool is_away(uint32_t tensor) const noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Pager& pager_;
  Activation& activation_;
  Examiner& examiner_;
  const PlanIndex* plan_index_ = nullptr;
  std::vector<Launch> launches_;  // by repeat
  std::vector<Dropped> dropped_;  // by tensor
  std::vector<uint32_t> maker_;   // by tensor: the repeat that makes it again
  std::vector<Check> checks_;     // in the order of their issue
  std::map<const PlanIndex*, std::vector<bool>> all_proofs_;
  std::vector<bool>* proofs_ = nullptr;  // by repeat: it was compared once, and the same
};

}  // namespace reprise::replay
