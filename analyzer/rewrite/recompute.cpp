#include "analyzer/rewrite/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/taskgraph/recompute_uses.h"

namespace reprise::analyzer {
namespace {

class Rewriter {
 public:
  Rewriter(const TaskGraph& graph, const std::vector<uint32_t>& calls, const Machine* guarded)
      : graph_(graph),
        guarded_(guarded),
        uses_(graph),
        place_(graph.calls.size(), CallIndex{kNone}),
        second_life_(graph.tensors.size(), kNone) {
    for (const uint32_t call : calls) chosen_.insert(CallIndex(call));
  }

  TaskGraph run() {
    choose_places();
    find_last_uses();
    TaskGraph result = graph_;
    result.calls.clear();
    result_ = &result;
    new_index_.resize(graph_.calls.size() + 1);
    for (CallIndex call{0}; call < graph_.calls.size(); ++call) copy_call(call);
    new_index_.back() = static_cast<uint32_t>(result.calls.size());
    for (plan::Tensor& tensor : result.tensors) tensor.free_call = tensor.allocate_call = kNone;
    for (CallIndex call{0}; call < result.calls.size(); ++call) renumber(call);
    result.waited_at_end = new_index_[result.waited_at_end];
    complete_task_graph(result);
    result.peak_bytes = graph_.peak_bytes;  // the program's, for people
    return result;
  }

 private:
  // Where each op is recomputed: before the first op that needs an output of it and finds it freed. Ops that use
  // outputs stand behind those that make them, so going backwards every wish is known in time.
  void choose_places() {
    std::map<CallIndex, CallIndex> wishes;  // op -> the place at which others need its outputs again
    for (const CallIndex call : chosen_) wishes[call] = own_place(call);
    while (!wishes.empty()) {
      const auto [call, place] = *wishes.rbegin();
      wishes.erase(std::prev(wishes.end()));
      place_[call] = place;
      runs_at_[place].push_back(call);
      for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
        if (!reads(access) || graph_.tensors[access.tensor].chunk_count == 0) continue;
        const CallIndex maker = uses_.maker(access.tensor);
        if (maker == kNone) continue;
        const bool freed = !uses_.needed_at(access.tensor, place);
        if (!freed && !chosen_.contains(maker)) continue;
        if (!freed && !is_between(access.tensor, maker, place)) continue;
        const auto [at, added] = wishes.insert({maker, place});
        if (!added) at->second = std::min(at->second, place);
      }
    }
    for (auto& [place, calls] : runs_at_) std::sort(calls.begin(), calls.end());
  }

  CallIndex own_place(CallIndex call) const { return uses_.longest_idle(call).before; }

  // Is `place` within the time for which the maker's outputs are dropped?
  bool is_between(uint32_t tensor, CallIndex maker, CallIndex place) const {
    const CallIndex until = own_place(maker);
    if (place >= until) return false;
    const std::vector<CallIndex>& uses = uses_.uses(tensor);
    const auto next = std::lower_bound(uses.begin(), uses.end(), until);
    return next != uses.begin() && *std::prev(next) < place;
  }

  // Until when each tensor's lives last, recomputed ops included. A use by a recomputed op counts as one at the place
  // before which it runs.
  void find_last_uses() {
    lives_.assign(graph_.tensors.size(), {});
    for (uint32_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) {
      const CallIndex maker = uses_.maker(tensor);
      // Small tensors are not worth a second life: they wait for the recompute, which makes the same bytes again.
      const bool twice = maker != kNone && graph_.tensors[tensor].chunk_count != 0;
      if (twice) lives_[tensor].split = place_[maker];
      for (const uint32_t use : uses_.uses(tensor)) record_use(tensor, {use, kNone});
    }
    for (const auto& [place, calls] : runs_at_) {
      for (const CallIndex call : calls) {
        for (const plan::OpAccess& access : graph_.calls[call].call.accesses) record_use(access.tensor, {place, call});
      }
    }
  }

  // A call of the program, or an op that is recomputed before it.
  struct Moment {
    uint32_t at = kNone;
    uint32_t recomputed = kNone;  // kNone, which is the call itself, comes behind all ops
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
    auto operator<=>(const Moment&) const = default;
  };
  struct Lives {
    uint32_t split = kNone;  // the second life begins before this call; kNone: there is one life
    std::optional<Moment> last[2];
  };

  void record_use(uint32_t tensor, Moment use) {
    Lives& lives = lives_[tensor];
    std::optional<Moment>& last = lives.last[lives.split != kNone && use.at >= lives.split ? 1 : 0];
    if (!last || *last < use) last = use;
  }

  // The bytes are needed behind the program's free.
  bool outlives_free(uint32_t tensor) const {
    if (is_persistent(graph_.tensors[tensor])) return false;
    const Lives& lives = lives_[tensor];
    const std::optional<Moment>& last = lives.last[lives.split == kNone ? 0 : 1];
    return last && last->at > graph_.tensors[tensor].free_call;
  }

  uint32_t now(uint32_t tensor) const { return second_life_[tensor] == kNone ? tensor : second_life_[tensor]; }

  void copy_call(CallIndex call) {
    if (const auto runs = runs_at_.find(call); runs != runs_at_.end()) {
      for (const CallIndex op : runs->second) recompute(op);
    }
    GraphCall entry = graph_.calls[call];
    for (plan::OpAccess& access : entry.call.accesses) access.tensor = now(access.tensor);
    if (entry.call.kind == plan::CallKind::free) {
      if (outlives_free(entry.call.tensor)) entry.call.kind = plan::CallKind::late_free;
      entry.call.tensor = now(entry.call.tensor);
    }
    new_index_[call] = static_cast<uint32_t>(result_->calls.size());
    result_->calls.push_back(std::move(entry));
    end_lives(graph_.calls[call].call, {call, kNone});
  }

  void recompute(CallIndex call) {
    GraphCall entry = graph_.calls[call];
    for (const plan::OpAccess& access : graph_.calls[call].call.accesses) {
      if (changes(access) && graph_.tensors[access.tensor].chunk_count != 0) begin_second_life(access.tensor);
    }
    for (plan::OpAccess& access : entry.call.accesses) access.tensor = now(access.tensor);
    entry.call.recompute_of = new_index_[call];
    entry.call.inserted = true;
    if (guarded_ != nullptr) {
      entry.call.duration_ns += recompute_guards_ns(*result_, graph_.calls[call].call, entry.call, *guarded_);
    }
    entry.waited = 0;
    result_->calls.push_back(std::move(entry));
    end_lives(graph_.calls[call].call, {place_[call], call});
  }

  void begin_second_life(uint32_t tensor) {
    if (second_life_[tensor] != kNone) return;  // the op has it by two names
    plan::Tensor second = graph_.tensors[tensor];
    second.recompute_of = tensor;
    second.allocate_call = 0;  // not persistent; set at the end
    result_->tensors.push_back(second);
    second_life_[tensor] = static_cast<uint32_t>(result_->tensors.size() - 1);
    add_memory_call(plan::CallKind::allocate, second_life_[tensor]);
  }

  // The last life ends with the program's free, unless that comes too early; other ends are the plan's own.
  void end_lives(const plan::Call& op, Moment moment) {
    std::vector<uint32_t> seen;
    for (const plan::OpAccess& access : op.accesses) {
      const uint32_t tensor = access.tensor;
      if (std::find(seen.begin(), seen.end(), tensor) != seen.end()) continue;
      seen.push_back(tensor);
      const Lives& lives = lives_[tensor];
      const bool first_of_two = lives.split != kNone && second_life_[tensor] == kNone;
      if (!first_of_two && !outlives_free(tensor)) continue;
      const int life = second_life_[tensor] == kNone ? 0 : 1;
      if (lives.last[life] == moment) add_memory_call(plan::CallKind::free, now(tensor));
    }
  }

  void add_memory_call(plan::CallKind kind, uint32_t tensor) {
    GraphCall entry;
    entry.call.kind = kind;
    entry.call.tensor = tensor;
    entry.call.inserted = true;
    entry.call.device = result_->tensors[tensor].device;
    result_->calls.push_back(std::move(entry));
  }

  void renumber(CallIndex call) {
    GraphCall& entry = result_->calls[call];
    if (entry.call.kind == plan::CallKind::allocate) result_->tensors[entry.call.tensor].allocate_call = call;
    if (entry.call.kind == plan::CallKind::free) result_->tensors[entry.call.tensor].free_call = call;
    if (!entry.call.inserted) entry.waited = new_index_[entry.waited];
  }

  const TaskGraph& graph_;
  const Machine* guarded_;
  RecomputeUses uses_;
  std::set<CallIndex> chosen_;
  ByCall<CallIndex> place_;                              // op -> the call before which it is recomputed
  std::map<CallIndex, std::vector<CallIndex>> runs_at_;  // the inverse
  std::vector<Lives> lives_;                             // by tensor
  std::vector<uint32_t> second_life_;                    // tensor -> its second life, once that has begun
  ByCall<uint32_t> new_index_;                           // in the result
  TaskGraph* result_ = nullptr;
};

}  // namespace

uint64_t recompute_guards_ns(const TaskGraph& graph, const plan::Call& first, const plan::Call& again,
                             const Machine& machine) {
  uint64_t sum = 0;
  for (const plan::OpAccess& access : again.accesses) {
    if (plan::shows_itself(graph.tensors, first, access)) continue;
    sum += 2 * hash_ns(graph.tensors[access.tensor].size, machine);
  }
  return sum;
}

TaskGraph with_recompute(const TaskGraph& graph, const std::vector<uint32_t>& calls, const Machine* guarded) {
  return Rewriter(graph, calls, guarded).run();
}

}  // namespace reprise::analyzer
