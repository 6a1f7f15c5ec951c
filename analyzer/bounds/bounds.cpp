#include "analyzer/bounds/bounds.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace reprise::analyzer {
namespace {

constexpr uint64_t kSmallAlignment = 512;
constexpr uint64_t kChunksPerSlackChunk = 64;
constexpr int kPasses = 5;
constexpr uint64_t kNoUse = ~uint64_t{0};

// What a tensor takes of the memory for chunks. Less than its chunks: a bound may leave the padding of the last one
// out.
uint64_t bytes_of(const TaskGraph& graph, uint32_t tensor) {
  return graph.tensors[tensor].chunk_count == 0 ? 0 : graph.tensors[tensor].size;
}

// Furthest-next-use eviction byte by byte, over the iteration again and again. Counts the bytes that come back.
class PartialEviction {
 public:
  PartialEviction(const TaskGraph& graph, uint64_t capacity)
      : graph_(graph),
        count_(graph.calls.size()),
        free_(capacity),
        uses_(graph.tensors.size()),
        resident_(graph.tensors.size(), 0),
        next_(graph.tensors.size(), kNoUse),
        touched_(graph.tensors.size(), 0) {
    for (CallIndex call{0}; call < graph.calls.size(); ++call) {
      for (const uint32_t tensor : graph.calls[call].operands) uses_[tensor].push_back(call);
    }
  }

  uint64_t reloaded_per_iteration() {
    uint64_t least = kNoUse;
    for (int pass = 0; pass < kPasses; ++pass) {
      reloaded_ = 0;
      for (CallIndex call{0}; call < graph_.calls.size(); ++call) step(call);
      turn();
      if (pass > 0) least = std::min(least, reloaded_);
    }
    return least;
  }

 private:
  uint64_t next_use(uint32_t tensor, uint32_t from) const {
    const auto next = std::lower_bound(uses_[tensor].begin(), uses_[tensor].end(), from);
    if (next != uses_[tensor].end()) return *next;
    return is_persistent(graph_.tensors[tensor]) ? count_ + uses_[tensor].front() : kNoUse;
  }

  void forget(uint32_t tensor) { by_next_.erase({next_[tensor], tensor}); }

  void step(CallIndex call) {
    const GraphCall& entry = graph_.calls[call];
    if (entry.call.kind == plan::CallKind::free) {
      forget(entry.call.tensor);
      free_ += resident_[entry.call.tensor];
      resident_[entry.call.tensor] = 0;
      touched_[entry.call.tensor] = 0;
    }
    for (const uint32_t tensor : entry.operands) forget(tensor);  // pinned
    for (const uint32_t tensor : entry.operands) bring_in(tensor);
    for (const uint32_t tensor : entry.operands) {
      next_[tensor] = next_use(tensor, call + 1);
      by_next_.insert({next_[tensor], tensor});
    }
  }

  void bring_in(uint32_t tensor) {
    const uint64_t missing = bytes_of(graph_, tensor) - resident_[tensor];
    while (free_ < missing) evict(missing - free_);
    free_ -= missing;
    resident_[tensor] += missing;
    if (touched_[tensor] != 0 || is_persistent(graph_.tensors[tensor])) reloaded_ += missing;
    touched_[tensor] = 1;
  }

  // At most `bytes`, of what is needed last.
  void evict(uint64_t bytes) {
    const auto furthest = std::prev(by_next_.end());
    const uint32_t tensor = furthest->second;
    const uint64_t freed = std::min(resident_[tensor], bytes);
    resident_[tensor] -= freed;
    free_ += freed;
    if (resident_[tensor] == 0) by_next_.erase(furthest);
  }

  // The next iteration counts from zero again.
  void turn() {
    std::set<std::pair<uint64_t, uint32_t>> turned;
    for (const auto& [next, tensor] : by_next_) {
      next_[tensor] = next == kNoUse ? kNoUse : next - count_;
      turned.insert({next_[tensor], tensor});
    }
    by_next_ = std::move(turned);
  }

  const TaskGraph& graph_;
  uint64_t count_;
  uint64_t free_;
  uint64_t reloaded_ = 0;
  std::vector<std::vector<uint32_t>> uses_;
  std::vector<uint64_t> resident_;  // bytes
  std::vector<uint64_t> next_;
  std::vector<uint8_t> touched_;
  std::set<std::pair<uint64_t, uint32_t>> by_next_;
};

// Most bytes that are alive at one op, hold something written within the period, and do not fit: each of them was
// copied out since. What no op writes may have been on the host for ever.
uint64_t least_offloaded(const TaskGraph& graph, uint64_t capacity) {
  std::vector<uint8_t> written(graph.tensors.size(), 0);
  for (const GraphCall& entry : graph.calls) {
    for (const uint32_t tensor : entry.writes) written[tensor] = 1;
  }
  uint64_t held = 0;
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    if (is_persistent(graph.tensors[t]) && written[t] != 0) held += bytes_of(graph, t);
  }
  uint64_t most = held;
  std::vector<uint8_t> touched(graph.tensors.size(), 0);
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.kind == plan::CallKind::free && touched[entry.call.tensor] != 0) {
      held -= bytes_of(graph, entry.call.tensor);
    }
    for (const uint32_t tensor : entry.operands) {
      if (is_persistent(graph.tensors[tensor]) || touched[tensor] != 0) continue;
      touched[tensor] = 1;
      held += bytes_of(graph, tensor);
    }
    most = std::max(most, held);
  }
  return most > capacity ? most - capacity : 0;
}

}  // namespace

WorkingSet largest_working_set(const TaskGraph& graph) {
  WorkingSet largest;
  std::vector<uint64_t> chunks;  // by device
  for (CallIndex call{0}; call < graph.calls.size(); ++call) {
    chunks.assign(graph.devices, 0);
    for (const uint32_t tensor : graph.calls[call].operands) {
      chunks[graph.tensors[tensor].device] += graph.tensors[tensor].chunk_count;
    }
    const uint64_t most = *std::max_element(chunks.begin(), chunks.end());
    if (most > largest.chunks) largest = {most, call};
  }
  return largest;
}

uint64_t reserved_bytes(const TaskGraph& graph, uint64_t slab_bytes, uint64_t held_bytes) {
  std::vector<uint64_t> small(graph.devices, 0);
  for (const plan::Tensor& tensor : graph.tensors) {
    if (!is_persistent(tensor) || tensor.chunk_count != 0) continue;
    small[tensor.device] += round_up(tensor.size, kSmallAlignment);
  }
  uint64_t chunks = divide_up(*std::max_element(small.begin(), small.end()), graph.chunk_bytes);
  chunks = graph.small_chunks.value_or(chunks + divide_up(chunks, kChunksPerSlackChunk));
  chunks += divide_up(slab_bytes, graph.chunk_bytes);
  return chunks * graph.chunk_bytes + held_bytes;
}

Bounds bounds_of(const TaskGraph& graph, uint64_t capacity, const Machine& machine) {
  Bounds bounds;
  // Each engine does the program's own work, too: its copies share the links with ours.
  uint64_t copies_in = 0;
  uint64_t copies_out = 0;
  for (const GraphCall& entry : graph.calls) {
    if (entry.call.op == trace::OpKind::copy_host_to_device) copies_in += entry.call.duration_ns;
    if (entry.call.op == trace::OpKind::copy_device_to_host) copies_out += entry.call.duration_ns;
  }
  bounds.compute_ns = graph.compute_ns - copies_in - copies_out;
  const uint64_t bytes = capacity * graph.chunk_bytes;
  bounds.reload_bytes = PartialEviction(graph, bytes).reloaded_per_iteration();
  bounds.offload_bytes = least_offloaded(graph, bytes);
  bounds.reload_ns = copies_in + copy_ns(bounds.reload_bytes, machine.h2d_bytes_per_s, 0);
  bounds.offload_ns = copies_out + copy_ns(bounds.offload_bytes, machine.d2h_bytes_per_s, 0);
  if (graph.devices == 1) {
    bounds.window_ns = window_bound(graph, bytes, machine);
    bounds.chain_ns = chain_bound(graph, bytes, machine);
  }
  const std::pair<uint64_t, const char*> all[] = {{bounds.compute_ns, "compute"},
                                                  {bounds.reload_ns, "bytes in"},
                                                  {bounds.offload_ns, "bytes out"},
                                                  {bounds.window_ns, "bytes of a stretch of ops"},
                                                  {bounds.chain_ns, "copies between ops that do not fit together"}};
  for (const auto& [time, name] : all) {
    if (time <= bounds.iteration_ns && bounds.binding[0] != 0) continue;
    bounds.iteration_ns = time;
    bounds.binding = name;
  }
  return bounds;
}

}  // namespace reprise::analyzer
