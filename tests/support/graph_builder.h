// Task graphs of small imaginary programs, for one or several devices, built in memory. Used by the analyzer's unit
// tests where a trace cannot say what is meant.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer::testing {

// Tensors are persistent, or live from the op that writes them first to the last one that uses them.
class GraphBuilder {
 public:
  explicit GraphBuilder(uint32_t devices, uint64_t chunk_bytes = 2 << 20) : chunk_(chunk_bytes) {
    graph_.devices = devices;
    graph_.chunk_bytes = chunk_bytes;
  }

  // Persistent ones first.
  uint32_t persistent(uint32_t device, uint64_t chunks = 1) { return add(device, chunks * chunk_); }
  uint32_t small(uint32_t device) { return add(device, 64); }
  uint32_t transient(uint32_t device, uint64_t chunks = 1) {
    const uint32_t tensor = add(device, chunks * chunk_);
    lives_.resize(graph_.tensors.size());
    lives_[tensor].transient = true;
    return tensor;
  }
  void kernel(uint32_t device, std::string name, std::vector<uint32_t> reads, std::vector<uint32_t> writes,
              uint64_t duration_ns = 100'000) {
    ops_.push_back({trace::OpKind::launch, device, std::move(name), std::move(reads), std::move(writes), duration_ns});
  }
  void peer(std::string name, uint32_t from, uint32_t to, uint64_t duration_ns = 0) {
    ops_.push_back({trace::OpKind::copy_peer, graph_.tensors[from].device, std::move(name), {from}, {to}, duration_ns});
  }
  // The program waits for everything at its end.
  void synchronize_at_end() { synchronizes_ = true; }

  TaskGraph build() {
    lives_.resize(graph_.tensors.size());
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      for (const uint32_t tensor : ops_[i].writes) record_use(tensor, i);
      for (const uint32_t tensor : ops_[i].reads) record_use(tensor, i);
    }
    for (uint32_t i = 0; i < ops_.size(); ++i) add_op(i);
    if (synchronizes_) graph_.waited_at_end = static_cast<uint32_t>(graph_.calls.size());
    complete_task_graph(graph_);
    return std::move(graph_);
  }

 private:
  struct Op {
    trace::OpKind kind;
    uint32_t device;
    std::string name;
    std::vector<uint32_t> reads;
    std::vector<uint32_t> writes;
    uint64_t duration_ns;
  };
  struct Life {
    bool transient = false;
    uint32_t first = kNone;
    uint32_t last = 0;
  };

  uint32_t add(uint32_t device, uint64_t bytes) {
    plan::Tensor tensor;
    tensor.size = bytes;
    tensor.device = device;
    tensor.chunk_count = chunks_of(bytes, chunk_);
    graph_.tensors.push_back(tensor);
    return static_cast<uint32_t>(graph_.tensors.size() - 1);
  }
  void record_use(uint32_t tensor, uint32_t op) {
    if (lives_[tensor].first == kNone) lives_[tensor].first = op;
    lives_[tensor].last = op;
  }
  void add_op(uint32_t index) {
    const Op& op = ops_[index];
    for (uint32_t t = 0; t < lives_.size(); ++t) {
      if (lives_[t].transient && lives_[t].first == index) memory_call(plan::CallKind::allocate, t);
    }
    GraphCall entry;
    entry.call.op = op.kind;
    entry.call.device = op.device;
    entry.call.name = op.name;
    entry.call.duration_ns = op.duration_ns;
    for (const uint32_t tensor : op.reads) entry.call.accesses.push_back({tensor, trace::kAccessRead});
    for (const uint32_t tensor : op.writes) entry.call.accesses.push_back({tensor, trace::kAccessWrite});
    graph_.calls.push_back(std::move(entry));
    for (uint32_t t = 0; t < lives_.size(); ++t) {
      if (lives_[t].transient && lives_[t].last == index) memory_call(plan::CallKind::free, t);
    }
  }
  void memory_call(plan::CallKind kind, uint32_t tensor) {
    const auto index = static_cast<uint32_t>(graph_.calls.size());
    (kind == plan::CallKind::allocate ? graph_.tensors[tensor].allocate_call : graph_.tensors[tensor].free_call) =
        index;
    GraphCall entry;
    entry.call.kind = kind;
    entry.call.tensor = tensor;
    graph_.calls.push_back(std::move(entry));
  }

  uint64_t chunk_;
  TaskGraph graph_;
  std::vector<Op> ops_;
  std::vector<Life> lives_;
  bool synchronizes_ = false;
};

}  // namespace reprise::analyzer::testing
