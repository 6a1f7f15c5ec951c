#include "analyzer/rewrite/split_tensors.h"

#include <algorithm>
#include <utility>

namespace reprise::analyzer {
namespace {

class Splitter {
 public:
  Splitter(const TaskGraph& graph, uint64_t most_chunks, uint64_t most_accesses)
      : graph_(graph),
        most_(std::max<uint64_t>(most_chunks, 1)),
        most_accesses_(most_accesses),
        per_part_(graph.tensors.size(), 0) {}

  TaskGraph run() {
    if (graph_.devices > 1 || !choose()) return graph_;
    result_ = graph_;
    result_.tensors.clear();
    result_.calls.clear();
    for (uint32_t tensor = 0; tensor < graph_.tensors.size(); ++tensor) add_tensor(tensor);
    for (CallIndex call{0}; call < graph_.calls.size(); ++call) add_call(call);
    new_index_.push_back(static_cast<uint32_t>(result_.calls.size()));
    result_.waited_at_end = new_index_[graph_.waited_at_end];
    set_reordered_from();
    complete_task_graph(result_);
    result_.peak_bytes = graph_.peak_bytes;  // the program's, for people
    return std::move(result_);
  }

 private:
  uint32_t root(uint32_t tensor) const { return plan::root_of(graph_.tensors, tensor); }

  // Sets how many chunks a part of each tensor has. A recomputed tensor is split like the one that it was before.
  bool choose() {
    std::vector<uint64_t> uses(graph_.tensors.size(), 0);  // by root
    std::vector<uint8_t> whole(graph_.tensors.size(), 0);
    uint64_t left = most_accesses_;
    for (const GraphCall& entry : graph_.calls) {
      const plan::CallKind kind = entry.call.kind;
      if (kind == plan::CallKind::free_handover || kind == plan::CallKind::allocate_handover)
        whole[entry.call.tensor] = 1;
      for (const uint32_t tensor : entry.operands) ++uses[root(tensor)];
    }
    std::vector<uint32_t> large;
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      const plan::Tensor& tensor = graph_.tensors[t];
      const bool stays = whole[t] != 0 || tensor.part_of != kNone || tensor.recompute_of != kNone;
      if (!stays && tensor.chunk_count > most_) large.push_back(t);
    }
    const auto chunks = [&](uint32_t t) { return graph_.tensors[t].chunk_count; };
    std::stable_sort(large.begin(), large.end(), [&](uint32_t a, uint32_t b) { return chunks(a) > chunks(b); });
    bool any = false;
    for (const uint32_t t : large) {
      const uint64_t per_part = divide_up(chunks(t), divide_up(chunks(t), most_));
      const uint64_t more = uses[t] * (divide_up(chunks(t), per_part) - 1);
      if (more == 0 || more > left) continue;
      left -= more;
      per_part_[t] = static_cast<uint32_t>(per_part);
      any = true;
    }
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) per_part_[t] = per_part_[root(t)];
    return any;
  }

  uint32_t count(uint32_t tensor) const {
    if (per_part_[tensor] == 0) return 1;
    return static_cast<uint32_t>(divide_up(graph_.tensors[tensor].chunk_count, per_part_[tensor]));
  }

  void add_tensor(uint32_t tensor) {
    const plan::Tensor& whole = graph_.tensors[tensor];
    const auto first = static_cast<uint32_t>(result_.tensors.size());
    first_.push_back(first);
    for (uint32_t i = 0; i < count(tensor); ++i) {
      plan::Tensor part = whole;
      if (whole.part_of != kNone) part.part_of = whole.part_of == tensor ? first : first_[whole.part_of];
      if (whole.recompute_of != kNone) part.recompute_of = first_[whole.recompute_of] + i;
      if (count(tensor) > 1) {
        const uint32_t chunk = i * per_part_[tensor];
        part.part_of = first;
        part.part_offset = chunk * graph_.chunk_bytes;
        part.chunk_count = std::min(per_part_[tensor], whole.chunk_count - chunk);
        part.size = std::min(part.chunk_count * graph_.chunk_bytes, whole.size - part.part_offset);
      }
      result_.tensors.push_back(part);
    }
  }

  void add_call(CallIndex call) {
    new_index_.push_back(static_cast<uint32_t>(result_.calls.size()));
    GraphCall entry = graph_.calls[call];
    entry.waited = new_index_[entry.waited];
    if (entry.call.kind == plan::CallKind::op) {
      if (entry.call.recompute_of != kNone) entry.call.recompute_of = new_index_[entry.call.recompute_of];
      entry.call.accesses.clear();
      for (const plan::OpAccess& access : graph_.calls[call].call.accesses) add_access(access, entry.call.accesses);
      result_.calls.push_back(std::move(entry));
      return;
    }
    const uint32_t tensor = entry.call.tensor;
    const uint32_t calls = entry.call.kind == plan::CallKind::late_free ? 1 : count(tensor);
    for (uint32_t i = 0; i < calls; ++i) {
      GraphCall& added = result_.calls.emplace_back(entry);
      added.call.tensor = first_[tensor] + i;
      added.call.inserted = entry.call.inserted || i > 0;
      if (i > 0) added.call.signature = 0;
      const auto index = static_cast<uint32_t>(result_.calls.size() - 1);
      if (entry.call.kind == plan::CallKind::allocate) result_.tensors[added.call.tensor].allocate_call = index;
      if (entry.call.kind == plan::CallKind::free) result_.tensors[added.call.tensor].free_call = index;
    }
  }

  // An access without a size may go anywhere in the tensor.
  void add_access(plan::OpAccess access, std::vector<plan::OpAccess>& accesses) const {
    const uint32_t tensor = access.tensor;
    const uint64_t end = access.offset + access.size;
    const uint64_t offset = access.offset;
    for (uint32_t i = 0; i < count(tensor); ++i) {
      access.tensor = first_[tensor] + i;
      const plan::Tensor& part = result_.tensors[access.tensor];
      if (count(tensor) > 1 && access.size == 0) access.offset = 0;
      if (count(tensor) > 1 && access.size != 0) {
        const uint64_t from = std::max(offset, part.part_offset);
        const uint64_t to = std::min(end, part.part_offset + part.size);
        if (from >= to) continue;
        access.offset = from - part.part_offset;
        access.size = to - from;
      }
      accesses.push_back(access);
    }
  }

  // In the program, too, inserted calls stand behind those that they belong to.
  void set_reordered_from() {
    if (graph_.reordered_from.empty()) return;
    std::vector<CallIndex> by_place(graph_.calls.size());
    for (CallIndex call{0}; call < by_place.size(); ++call) by_place[graph_.reordered_from[call]] = call;
    result_.reordered_from.resize(result_.calls.size());
    uint32_t place = 0;
    for (const CallIndex call : by_place) {
      for (uint32_t now = new_index_[call]; now < new_index_[call + 1]; ++now) result_.reordered_from[now] = place++;
    }
  }

  const TaskGraph& graph_;
  uint64_t most_;
  uint64_t most_accesses_;
  TaskGraph result_;
  std::vector<uint32_t> per_part_;   // tensor -> chunks; 0: stays whole
  std::vector<uint32_t> first_;      // tensor -> its first part in the result
  std::vector<uint32_t> new_index_;  // call -> in the result
};

}  // namespace

TaskGraph with_split_tensors(const TaskGraph& graph, uint64_t most_chunks, uint64_t most_accesses) {
  return Splitter(graph, most_chunks, most_accesses).run();
}

}  // namespace reprise::analyzer
