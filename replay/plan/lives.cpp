#include "replay/plan/lives.h"

#include <algorithm>
#include <utility>

#include "analyzer/plan/vertex_kinds.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
using plan::kNone;

class Folder {
 public:
  explicit Folder(PlanIndex* index) : index_(*index), plan_(index->plan) {}

  void run() {
    const size_t count = plan_.vertices.size();
    index_.ours.assign(count, false);
    index_.drops.assign(count, false);
    index_.drop_launch.assign(count, kNone);
    index_.repeat_of.assign(count, kNone);
    index_.repeated_by.assign(count, kNone);
    find_roots();
    for (uint32_t v = 0; v < count; ++v) classify(v);
    find_repeats();
    order_lives();
    rename();
    link_calls();
  }

 private:
  void find_roots() {
    root_.resize(plan_.tensors.size());
    lives_on_.assign(plan_.tensors.size(), false);
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const uint32_t before = plan_.tensors[t].recompute_of;
      root_[t] = before == kNone ? t : root_[before];  // `before` is smaller (check_structure)
      if (before != kNone) lives_on_[before] = true;
    }
  }

  void classify(uint32_t v) {
    const plan::Vertex& vertex = plan_.vertices[v];
    if (plan::copies(vertex.kind)) {
      index_.ours[v] = true;
      return;
    }
    const plan::Call& call = plan_.calls[vertex.call];
    index_.ours[v] = call.inserted || call.recompute_of != kNone;
    index_.drops[v] = plan::frees(vertex.kind) && lives_on_[vertex.tensor];
  }

  void find_repeats() {
    for (uint32_t v = 0; v < plan_.vertices.size(); ++v) {
      const plan::Vertex& vertex = plan_.vertices[v];
      if (!plan::runs_op(vertex.kind) || plan_.calls[vertex.call].recompute_of == kNone) continue;
      Repeat repeat;
      repeat.again = v;
      repeat.first = plan_.calls[plan_.calls[vertex.call].recompute_of].vertex;
      const plan::Call& first = plan_.calls[plan_.calls[vertex.call].recompute_of];
      for (const plan::OpAccess& access : plan_.calls[vertex.call].accesses) {
        const bool made = root_[access.tensor] != access.tensor && plan_.tensors[access.tensor].chunk_count != 0 &&
                          (access.mode & trace::kAccessRead) == 0;
        std::vector<uint32_t>& list = made ? repeat.outputs : repeat.unchanged;
        const uint32_t tensor = root_[access.tensor];
        if (std::find(list.begin(), list.end(), tensor) != list.end()) continue;
        list.push_back(tensor);
        if (!made && plan::shows_itself(plan_.tensors, first, access)) repeat.shown.push_back(tensor);
      }
      index_.repeats.push_back(std::move(repeat));
    }
    std::sort(index_.repeats.begin(), index_.repeats.end(),
              [this](const Repeat& a, const Repeat& b) { return call_of(a.first) < call_of(b.first); });
    for (uint32_t r = 0; r < index_.repeats.size(); ++r) {
      index_.repeat_of[index_.repeats[r].again] = r;
      index_.repeated_by[index_.repeats[r].first] = r;
    }
  }
  uint32_t call_of(uint32_t vertex) const { return plan_.vertices[vertex].call; }

  void add_edge(uint32_t from, uint32_t to) {
    auto& predecessors = plan_.vertices[to].predecessors;
    const bool known = std::any_of(predecessors.begin(), predecessors.end(),
                                   [&](const plan::Predecessor& p) { return p.vertex == from && p.distance == 0; });
    if (!known) predecessors.push_back({from, plan::EdgeKind::program, 0});
  }

  // A repeat comes behind the launch that it repeats and behind the drops of what it makes.
  void order_lives() {
    std::vector<const Repeat*> repeat_that_makes(plan_.tensors.size(), nullptr);
    for (const Repeat& repeat : index_.repeats) {
      add_edge(repeat.first, repeat.again);
      for (const uint32_t tensor : repeat.outputs) repeat_that_makes[tensor] = &repeat;
    }
    for (uint32_t v = 0; v < plan_.vertices.size(); ++v) {
      if (!index_.drops[v]) continue;
      const Repeat* const repeat = repeat_that_makes[root_[plan_.vertices[v].tensor]];
      index_.drops[v] = repeat != nullptr;
      if (repeat == nullptr) continue;  // nothing makes it again: the verifier refuses such a plan
      index_.drop_launch[v] = repeat->first;
      add_edge(v, repeat->again);
    }
  }

  void rename() {
    // The range has the home of the first life; where a later one lies elsewhere, it is mapped anew.
    for (plan::Tensor& tensor : plan_.tensors) {
      if (tensor.recompute_of != kNone) tensor.home = kNone;
    }
    for (plan::Vertex& vertex : plan_.vertices) {
      if (vertex.tensor != kNone) vertex.tensor = root_[vertex.tensor];
      for (plan::Acquire& acquire : vertex.acquires) acquire.tensor = root_[acquire.tensor];
    }
    for (plan::Call& call : plan_.calls) {
      if (call.tensor != kNone) call.tensor = root_[call.tensor];
      for (plan::OpAccess& access : call.accesses) access.tensor = root_[access.tensor];
    }
  }

  void link_calls() {
    const auto count = static_cast<uint32_t>(plan_.calls.size());
    const auto of_program = [this](uint32_t call) {
      return !plan_.calls[call].inserted && plan_.calls[call].recompute_of == kNone;
    };
    index_.next_call.assign(count, 0);
    index_.last_call = count - 1;
    while (!of_program(index_.last_call)) --index_.last_call;
    index_.last_work = index_.last_call;
    while (index_.last_work > 0 && (frees(index_.last_work) || !of_program(index_.last_work))) --index_.last_work;
    if (frees(index_.last_work)) index_.last_work = index_.last_call;
    uint32_t next = 0;
    for (uint32_t call = count; call-- > 0;) {
      index_.next_call[call] = next;
      if (of_program(call)) next = call;
    }
    index_.next_call[index_.last_call] = next;  // the first
  }

  bool frees(uint32_t call) const {
    const CallKind kind = plan_.calls[call].kind;
    return kind == CallKind::free || kind == CallKind::free_handover || kind == CallKind::late_free;
  }

  PlanIndex& index_;
  plan::Plan& plan_;
  std::vector<uint32_t> root_;
  std::vector<bool> lives_on_;  // it is made again
};

}  // namespace

void fold_lives(PlanIndex* plan_index) { Folder(plan_index).run(); }

}  // namespace reprise::replay
