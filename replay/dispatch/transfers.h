// The transfers of the plan in force, offloads and reloads: when they go, and their copies. What a vertex has to wait
// for on the device. Callers: the plan executor, and the plan's safety.
#pragma once
#include <array>
#include <vector>

#include "replay/dispatch/activation.h"
#include "replay/dispatch/plan_in_force.h"
#include "replay/dispatch/plan_safety.h"
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/progress/progress.h"
#include "replay/progress/stopwatch.h"

namespace reprise::replay {

class Transfers {
 public:
  Transfers(Shared* shared, ManagedMemory* memory, Activation* activation, Progress* progress,
            const Stopwatch* stopwatch, PlanInForce* plan) noexcept
      : shared_(*shared),
        memory_(*memory),
        activation_(*activation),
        progress_(*progress),
        stopwatch_(*stopwatch),
        plan_(*plan) {}

  // A plan comes in force.
  void begin() noexcept;
  // Issues those of one direction that may go. True: something was issued.
  bool issue(LaneKind kind) noexcept;
  // One is ready, but its lane is full.
  bool ready() const noexcept { return ready_; }

  // Offloads whose bytes may be on the host already: compared, then copied where they are not.
  bool compare_instead(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept;
  bool any_departing() const noexcept { return !departures_.empty(); }
  bool advance_departures() noexcept;
  // The plan ends: what was being compared is copied, or stays where it is.
  void settle_departures() noexcept;

  // The copy of a transfer vertex behind what it waits for, bracketed for the activity source.
  CUresult copy_in_time(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                        DigestCheck* comparison = nullptr) noexcept;
  void departed(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneUse use) noexcept;
  void stay(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, CUresult result) noexcept;
  void failed(Instance instance, CUresult result) noexcept;
  LaneUse last_to_host() const noexcept { return {Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued}; }

  CUresult wait_for_predecessors(Instance instance, LaneIndex lane) noexcept;
  // Are those of its predecessors complete that are transfers?
  bool transfers_complete(Instance instance) const noexcept;
  // Work on other lanes that the vertex will be told to wait for.
  LaneUses awaited_elsewhere(Instance instance, LaneIndex lane) const noexcept;
  // By which the activity source knows it; 0: it is not sampled.
  uint64_t activity_id(Instance instance) const noexcept {
    return stopwatch_.sample().id_of(instance.iteration, instance.vertex);
  }

 private:
  LaneUses transfers_before(Instance instance) const noexcept;
  bool on_its_way(Instance instance) const noexcept;
  bool far_enough_ahead(LaneIndex lane) noexcept;
  void issue_one(Instance instance) noexcept;
  CUresult copy_for(const plan::Vertex& vertex, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                    DigestCheck* comparison) noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Activation& activation_;
  Progress& progress_;
  const Stopwatch& stopwatch_;
  PlanInForce& plan_;
  bool ready_ = false;
  struct Departure {
    Instance instance;
    DigestCheck comparison;
    std::vector<ChunkIndex> chunks;
  };
  std::vector<Departure> departures_;
  std::array<std::vector<Instance>, 2> sent_;  // by direction: those that may not be done, oldest first
};

}  // namespace reprise::replay
