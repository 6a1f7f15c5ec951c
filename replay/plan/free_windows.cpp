#include "replay/plan/free_windows.h"

#include <algorithm>

#include "analyzer/plan/vertex_kinds.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
using plan::kNone;

constexpr uint64_t kGranules = 1u << 16;  // of the slab region, which is looked at no finer

bool is_programs(const plan::Call& call) { return !call.inserted && call.recompute_of == kNone; }

class WindowSearch {
 public:
  explicit WindowSearch(const PlanIndex& index)
      : index_(index), plan_(index.plan), calls_(static_cast<uint32_t>(plan_.calls.size())) {
    granule_bytes_ = plan_.slab_bytes / kGranules + 1;
    granules_ = static_cast<uint32_t>(plan_.slab_bytes / granule_bytes_ + 1);
    lives_again_.assign(plan_.tensors.size(), false);
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      if (plan_.tensors[t].recompute_of != kNone) lives_again_[plan::root_of(plan_.tensors, t)] = true;
    }
  }

  std::vector<FreeWindow> run() {
    windows_.assign(calls_, {});
    sort();
    find_first_needs();
    find_last_waits();
    find_places();
    for (uint32_t call = 0; call < calls_; ++call) {
      const plan::Call& free = plan_.calls[call];
      if (free.kind == CallKind::free_handover && call != 0) windows_[call].until = taken_over_at(call);
      if (!may_float(call)) continue;
      const plan::Tensor& tensor = plan_.tensors[free.tensor];
      windows_[call].until = std::min({needed_at_[free.vertex], call + calls_, tensor.allocate_call + calls_});
      windows_[call].behind = std::max(waits_for_[free.vertex], tensor.allocate_call);
    }
    bound_by_places();
    return std::move(windows_);
  }

 private:
  bool may_float(uint32_t call) const {
    const plan::Call& free = plan_.calls[call];
    if (call == 0 || free.kind != CallKind::free || !is_programs(free) || free.vertex == kNone) return false;
    const plan::Tensor& tensor = plan_.tensors[free.tensor];
    return tensor.allocate_call != kNone && tensor.recompute_of == kNone && !lives_again_[free.tensor];
  }

  uint32_t taken_over_at(uint32_t call) const {
    uint32_t at = call + 1;
    while (at < calls_ && (plan_.calls[at].kind != CallKind::allocate_handover ||
                           plan_.calls[at].tensor != plan_.calls[call].tensor)) {
      ++at;
    }
    return at;
  }

  // By the edges within an iteration. Releases have more of them than the plan's order heeds.
  void sort() {
    std::vector<uint32_t> missing = index_.predecessors;
    for (uint32_t v = 0; v < missing.size(); ++v) {
      if (missing[v] == 0) sorted_.push_back(v);
    }
    for (size_t i = 0; i < sorted_.size(); ++i) {
      for (const Edge& edge : index_.successors[sorted_[i]]) {
        if (edge.distance == 0 && --missing[edge.vertex] == 0) sorted_.push_back(edge.vertex);
      }
    }
  }

  // By vertex: the position of the first call of the program that cannot be issued before it, through whatever ones of
  // ours. Edges into the next iteration lead to vertices whose own needs are those of a first pass.
  void find_first_needs() {
    const std::vector<uint32_t> alone(plan_.vertices.size(), kNone);
    needed_at_ = first_needs(first_needs(alone));
  }
  std::vector<uint32_t> first_needs(const std::vector<uint32_t>& of_next) const {
    std::vector<uint32_t> needs(plan_.vertices.size(), kNone);
    for (auto at = sorted_.rbegin(); at != sorted_.rend(); ++at) {
      for (const Edge& edge : index_.successors[*at]) {
        const plan::Vertex& vertex = plan_.vertices[edge.vertex];
        const bool calls = plan::runs_op(vertex.kind) && is_programs(plan_.calls[vertex.call]);
        const uint32_t need = calls ? vertex.call : (edge.distance == 0 ? needs : of_next)[edge.vertex];
        if (need != kNone) needs[*at] = std::min(needs[*at], need + edge.distance * calls_);
      }
    }
    return needs;
  }

  // By vertex: the last call of the program that it waits for, through whatever ones of ours; 0 if none.
  void find_last_waits() {
    waits_for_.assign(plan_.vertices.size(), 0);
    for (const uint32_t v : sorted_) {
      for (const plan::Predecessor& predecessor : plan_.vertices[v].predecessors) {
        if (predecessor.distance != 0) continue;
        const plan::Vertex& vertex = plan_.vertices[predecessor.vertex];
        const bool calls = vertex.call != kNone && is_programs(plan_.calls[vertex.call]);
        waits_for_[v] = std::max(waits_for_[v], calls ? vertex.call : waits_for_[predecessor.vertex]);
      }
    }
  }

  // By tensor: the chunks and granules that it has at some time.
  void find_places() {
    places_.resize(plan_.tensors.size());
    const auto add = [&](uint32_t tensor, uint32_t placement) {
      if (placement == kNone) return;
      const std::vector<uint32_t>& chunks = plan_.placements[placement].chunks;
      places_[tensor].insert(places_[tensor].end(), chunks.begin(), chunks.end());
    };
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const plan::Tensor& tensor = plan_.tensors[t];
      add(t, tensor.home);
      if (tensor.chunk_count != 0 || tensor.allocate_call == kNone) continue;
      const uint64_t end = tensor.slab_offset + std::max<uint64_t>(tensor.size, 1) - 1;
      for (uint64_t g = tensor.slab_offset / granule_bytes_; g <= end / granule_bytes_; ++g) {
        places_[t].push_back(plan_.chunk_count + static_cast<uint32_t>(g));
      }
    }
    for (const plan::Vertex& vertex : plan_.vertices) {
      for (const plan::Acquire& acquire : vertex.acquires) {
        if (acquire.placement != plan_.tensors[acquire.tensor].home) add(acquire.tensor, acquire.placement);
      }
    }
  }

  // Before another tensor of the same place is allocated: from then on unseen work may touch that one.
  void bound_by_places() {
    std::vector<uint32_t> next(plan_.chunk_count + granules_, kNone);  // allocation, by place
    for (uint32_t position = 2 * calls_; position-- > 0;) {
      const uint32_t at = position % calls_;
      const plan::Call& call = plan_.calls[at];
      if (call.kind == CallKind::op || call.tensor == kNone) continue;
      const bool allocates = call.kind == CallKind::allocate;
      for (const uint32_t place : places_[call.tensor]) {
        if (allocates) {
          next[place] = position;
        } else if (position < calls_ && call.kind == CallKind::free) {
          windows_[at].until = std::min(windows_[at].until, next[place]);
        }
      }
    }
  }

  const PlanIndex& index_;
  const plan::Plan& plan_;
  const uint32_t calls_;
  uint64_t granule_bytes_ = 1;
  uint32_t granules_ = 0;
  std::vector<bool> lives_again_;
  std::vector<uint32_t> sorted_;
  std::vector<uint32_t> needed_at_;
  std::vector<uint32_t> waits_for_;
  std::vector<std::vector<uint32_t>> places_;
  std::vector<FreeWindow> windows_;
};

}  // namespace

std::vector<FreeWindow> free_windows(const PlanIndex& plan_index) { return WindowSearch(plan_index).run(); }

}  // namespace reprise::replay
