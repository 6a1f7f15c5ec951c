// Runs a plan once in its own order on a machine of chunks, for two iterations, and asks for everything that must hold
// in every other order, too: questions of reachability. Used by the verifier only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/verify/reach.h"
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

// Everything that has been asked and is not answered yet.
class Questions {
 public:
  explicit Questions(const Unrolled& graph) : reach_(graph) {}

  void ask(uint32_t from, uint32_t to, const Requirement& why) {
    if (from == to || reach_.quickly(from, to)) return;
    open_.push_back({from, to, static_cast<uint32_t>(notes_.size())});
    notes_.push_back(why);
  }

  struct Failure {
    bool found = false;
    uint32_t from = 0;
    uint32_t to = 0;
    Requirement why;
  };
  Failure first_failure();

 private:
  Reach reach_;
  std::vector<Reach::Question> open_;
  std::vector<Requirement> notes_;
};

// Residency, versions, chunks: not ok when the plan's own order is wrong already.
Status walk_chunks(const Unrolled& graph, Questions& questions);
// Accesses that conflict, in the program's order; host copies; barriers.
Status walk_conflicts(const Unrolled& graph, Questions& questions);
// Small tensors that share bytes of the slab.
Status walk_slab(const Unrolled& graph, Questions& questions);
// Recomputed ops make the bytes that they made before.
Status check_recompute(const plan::Plan& plan);
// What stays mapped while it is away is in its place whenever an op may touch it unseen.
Status check_aliases(const plan::Plan& plan);
// The parts of a split tensor are together all of it, for every op that uses it.
Status check_split_tensors(const plan::Plan& plan);

// Does an op use a tensor that its accesses do not name? An opaque one may use everything that is alive.
bool uses_everything(const plan::Call& call);
bool alive_at(const plan::Tensor& tensor, uint32_t call);
// How a node uses a tensor: "reads it", "writes it", "copies it out", ...
std::string use_of(const Unrolled& graph, uint32_t node, uint32_t tensor);
// A refusal; `what` names tensors, vertices, chunks.
Status refusal(const std::string& what);

// What goes wrong when `to` does not wait for `from`, and a legal order in which it does.
std::string counterexample(const Unrolled& graph, const Questions::Failure& failure);

}  // namespace reprise::analyzer
