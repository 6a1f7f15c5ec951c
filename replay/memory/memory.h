// What the dispatcher knows about memory, in one place: lanes, chunks, mappings, the host tier, the tensors. Used by
// the pager, the activation of a plan and the plan executor, all on the dispatcher thread.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "replay/digest/digests.h"
#include "replay/memory/addresses/ranges.h"
#include "replay/memory/budget.h"
#include "replay/memory/chunks.h"
#include "replay/memory/lanes/lanes.h"
#include "replay/memory/mappings.h"
#include "replay/memory/safety.h"
#include "replay/memory/tensors.h"
#include "replay/memory/tiers/host.h"

namespace reprise::replay {

// Bytes that moved since the start.
struct Traffic {
  uint64_t offloaded_bytes = 0;
  uint64_t reloaded_bytes = 0;
  uint64_t reloaded_chunks = 0;
  uint64_t spared_bytes = 0;       // left without a copy: the host had the same
  uint64_t dropped_bytes = 0;      // given up, to be computed again
  uint64_t repeated_launches = 0;  // that have computed them again
  uint64_t failed_copies = 0;

  void add(const Traffic& more) noexcept {
    offloaded_bytes += more.offloaded_bytes;
    reloaded_bytes += more.reloaded_bytes;
    reloaded_chunks += more.reloaded_chunks;
    spared_bytes += more.spared_bytes;
    dropped_bytes += more.dropped_bytes;
    repeated_launches += more.repeated_launches;
    failed_copies += more.failed_copies;
  }
};

// How the program's memory is kept safe now: one way on demand, another while a plan is in force of which all ops are
// audited.
class SafetyInForce {
 public:
  // Chosen once (safety/choose.h).
  void choose(std::unique_ptr<Safety> on_demand, std::unique_ptr<Safety> of_audited) noexcept {
    on_demand_ = std::move(on_demand);
    of_audited_ = std::move(of_audited);
    leave_audited();
  }
  void enter_audited() noexcept { now_ = of_audited_.get(); }
  void leave_audited() noexcept { now_ = on_demand_.get(); }
  Safety* operator->() const noexcept { return now_; }

 private:
  std::unique_ptr<Safety> on_demand_;
  std::unique_ptr<Safety> of_audited_;
  Safety* now_ = nullptr;
};

// The plans' region of small tensors.
struct PlanRegion {
  uint64_t blocks = 0;  // as the last plan had it
  LaneUses uses;        // by work that is issued on demand
};

struct ManagedMemory {
  Arena arena;
  Lanes lanes;
  ChunkPool chunks;
  Outside outside;
  Mappings mappings;
  HostTier host;
  Digests digests;
  // Cells that were given up while their digest was with the driver.
  struct RetiredCell {
    DigestCell cell;
    LaneUse computed;
  };
  std::vector<RetiredCell> retired_cells;
  Tensors tensors;
  Blocks blocks;
  SafetyInForce safety;
  Traffic traffic;
  PlanRegion plan_region;
  // Host slots that were given back may still be read by reloads up to this position.
  uint64_t slot_reads = 0;

  // What moves when the tensor does: its block, where it is small.
  ResidentTensor& mover_of(ResidentTensor& tensor) noexcept {
    SlabBlock* const block = tensor.chunk_count == 0 ? blocks.find(tensor.base) : nullptr;
    return block != nullptr ? *block : tensor;
  }
  // Everything that moves, at most once each.
  template <typename Visit>
  void for_each_mover(Visit visit) {
    tensors.for_each([&](ResidentTensor& tensor) {
      if (tensor.chunk_count > 0) visit(tensor);
    });
    blocks.for_each(visit);
  }
  // Work at `use` touched the tensor.
  void touched(ResidentTensor& tensor, LaneUse use, bool wrote) noexcept;
};

// Copies a tensor whose bytes are in `chunks` to its host slot (which must exist) on the to-host lane, after `after`:
// where the safety finds them. On success the host copy is made. On an
// error the tensor stays where it is, and what is with the driver of the copy is among its uses.
CUresult copy_out(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                  const LaneUses& after) noexcept;
// Copies the host slot into `chunks` on the to-device lane, after `after`, likewise; the position in *done.
CUresult copy_in(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                 const LaneUses& after, LaneUse* done) noexcept;
// Gives the tensor's host slot back.
void drop_host_copy(ManagedMemory& memory, ResidentTensor& tensor) noexcept;
// The host slot is about to hold other bytes, or those of another tensor.
void forget_slot_digest(ManagedMemory& memory, ResidentTensor& tensor) noexcept;

// A cell that nothing is computed into any more; kNoDigest when all are taken.
DigestCell take_cell(ManagedMemory& memory) noexcept;
// Its digest may still be with the driver until `computed`.
void give_back_cell(ManagedMemory& memory, DigestCell* cell, LaneUse computed) noexcept;

// A departure whose bytes the host may have already: its digest is on the way.
struct DigestCheck {
  DigestCell cell = kNoDigest;  // kNoDigest: nothing is compared
  LaneUse computed;
};
// A tensor that is to be copied out may not need it: where its slot holds bytes of a known digest, begins to compute
// that of the bytes in `chunks` on the lane for digests, behind `after`. The comparison is empty where that is not so,
// or tensors like this one have always changed lately.
DigestCheck begin_comparison(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                             const LaneUses& after) noexcept;
// The digest is complete. Equal: the host copy is valid. Else the bytes have to be copied, with copy_out_compared.
bool end_comparison(ManagedMemory& memory, ResidentTensor& tensor, const DigestCheck& comparison) noexcept;
// copy_out, and what is known of the slot afterwards: the digest that a comparison has found, or one that is computed
// beside the copy where `again` says that the tensor may leave once more with these bytes.
CUresult copy_out_compared(ManagedMemory& memory, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                           const LaneUses& after, DigestCheck* comparison, bool again) noexcept;
// Gives a slot to a tensor that has none. False: the host tier is full and may not grow.
bool ensure_slot(ManagedMemory& memory, ResidentTensor& tensor) noexcept;
// The same, for which host copies of resident tensors are given up where the host tier is full.
bool ensure_slot_at_cost(ManagedMemory& memory, ResidentTensor& tensor) noexcept;

}  // namespace reprise::replay
