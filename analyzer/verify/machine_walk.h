// Runs a plan once in its own order on a machine of chunks, for two iterations, and collects what must hold in every
// other order as questions of reachability. Used by the verifier only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/verify/unrolled.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

// Why a path must exist. The words of the message are made only if it does not.
struct Requirement {
  enum Kind : uint8_t { overwrite, not_freed, remap, early_use, conflict, host_copy, slab, barrier } kind = conflict;
  uint32_t tensor = plan::kNone;
  uint32_t other = plan::kNone;  // overwrite, not_freed, slab: the tensor that takes the place
  uint32_t chunk = plan::kNone;
};

struct Questions {
  std::vector<Unrolled::Question> list;
  std::vector<Requirement> notes;

  void ask(uint32_t from, uint32_t to, const Requirement& why) {
    if (from == to) return;
    list.push_back({from, to, static_cast<uint32_t>(notes.size())});
    notes.push_back(why);
  }
};

// Residency, versions, chunks: not ok when the plan's own order is wrong already.
Status walk_chunks(const plan::Plan& plan, const Unrolled& graph, Questions& questions);
// Accesses that conflict, in the program's order; host copies; barriers.
Status walk_conflicts(const plan::Plan& plan, const Unrolled& graph, Questions& questions);
// Small tensors that share bytes of the slab.
Status walk_slab(const plan::Plan& plan, const Unrolled& graph, Questions& questions);

// Does an op use a tensor that its accesses do not name? An opaque one may use everything that is alive.
bool uses_everything(const plan::Call& call);
bool alive_at(const plan::Tensor& tensor, uint32_t call);

}  // namespace reprise::analyzer
