// Plans of small random programs, for property tests of what reads plans: a few persistent and transient tensors, calls
// in program order, a vertex for each op and free, some transfers, edges of both distances. They hold the structure
// that the replay takes for granted, not what a verifier proves.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/trace/signature.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay::testing {

class RandomPlan {
 public:
  explicit RandomPlan(uint64_t chunk_bytes) {
    plan_.chunk_bytes = chunk_bytes;
    plan_.slab_bytes = 16 * 512;
    for (auto i = uniform(1, 4); i > 0; --i) add_tensor(true);
    for (auto i = uniform(0, 5); i > 0; --i) add_tensor(false);
    for (auto i = uniform(2, 14); i > 0; --i) step();
    while (!live_.empty()) free(0);
    if (plan_.calls.empty()) op();
    order();
  }
  plan::Plan take() { return std::move(plan_); }

 private:
  void add_tensor(bool persistent) {
    plan::Tensor tensor;
    tensor.chunk_count = uniform(0u, 4u);
    tensor.size = tensor.chunk_count == 0 ? uniform<uint64_t>(1, 400) : tensor.chunk_count * plan_.chunk_bytes - 24;
    if (persistent) {
      usable_.push_back(static_cast<uint32_t>(plan_.tensors.size()));
    } else {
      unborn_.push_back(static_cast<uint32_t>(plan_.tensors.size()));
    }
    plan_.tensors.push_back(tensor);
  }

  void step() {
    const int what = uniform(0, 6);
    if (what == 0 && !unborn_.empty()) {
      allocate();
    } else if (what == 1 && !live_.empty()) {
      free(uniform<size_t>(0, live_.size()));
    } else if (what == 2) {
      transfer();
    } else {
      op();
    }
  }

  plan::Call& call(plan::CallKind kind) {
    plan_.calls.emplace_back();
    plan_.calls.back().kind = kind;
    plan_.calls.back().name = std::string("call ").append(std::to_string(plan_.calls.size()));
    return plan_.calls.back();
  }
  // A vertex behind some of those before it, and of those of the iteration before.
  plan::Vertex& vertex(plan::VertexKind kind) {
    plan::Vertex made;
    made.kind = kind;
    const auto count = static_cast<uint32_t>(plan_.vertices.size());
    for (uint32_t v = 0; v < count; ++v) {
      if (one_in(3)) made.predecessors.push_back({v, plan::EdgeKind::data, 0});
    }
    plan_.vertices.push_back(made);
    const auto one = [&] { return uniform(0u, count + 1); };
    if (one_in(2)) plan_.vertices[one()].predecessors.push_back({one(), plan::EdgeKind::memory, 1});
    return plan_.vertices.back();
  }

  void allocate() {
    const uint32_t tensor = unborn_.back();
    unborn_.pop_back();
    plan::Tensor& made = plan_.tensors[tensor];
    made.allocate_call = static_cast<uint32_t>(plan_.calls.size());
    if (made.chunk_count == 0) made.slab_offset = lowest_offset() * 512;
    plan::Call& added = call(plan::CallKind::allocate);
    added.tensor = tensor;
    added.origin = one_in(2) ? trace::Origin::alloc : trace::Origin::async;
    added.signature = trace::allocate_signature(added.origin, made.size);
    live_.push_back(tensor);
    usable_.push_back(tensor);
  }
  // Small tensors share offsets over time.
  uint64_t lowest_offset() const {
    for (uint64_t offset = 0;; ++offset) {
      const bool taken = std::any_of(live_.begin(), live_.end(), [&](uint32_t tensor) {
        return plan_.tensors[tensor].chunk_count == 0 && plan_.tensors[tensor].slab_offset == offset * 512;
      });
      if (!taken) return offset;
    }
  }

  void free(size_t index) {
    const uint32_t tensor = live_[index];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
    std::erase(usable_, tensor);
    plan::Tensor& freed = plan_.tensors[tensor];
    freed.free_call = static_cast<uint32_t>(plan_.calls.size());
    const auto made = static_cast<uint32_t>(plan_.vertices.size());
    plan::Call& added = call(plan::CallKind::free);
    added.tensor = tensor;
    added.vertex = made;
    added.signature = trace::free_signature(added.origin, freed.size);
    plan::Vertex& release = vertex(plan::VertexKind::release);
    release.call = freed.free_call;
    release.tensor = tensor;
  }

  void op() {
    const auto index = static_cast<uint32_t>(plan_.calls.size());
    const auto made = static_cast<uint32_t>(plan_.vertices.size());
    plan::Call& added = call(plan::CallKind::op);
    added.op = one_in(3) ? trace::OpKind::memset : trace::OpKind::launch;
    added.signature = 1000 + uniform<uint64_t>(0, 5);
    added.stream = uniform(0u, 3u);
    added.vertex = made;
    for (auto i = uniform(0, 4); i > 0; --i) {
      const uint32_t tensor = one_of(usable_);
      added.accesses.push_back({tensor, trace::kAccessWrite, uniform<uint64_t>(0, plan_.tensors[tensor].size), 0,
                                static_cast<uint32_t>(8 * added.accesses.size())});
    }
    vertex(plan::VertexKind::op).call = index;
  }

  void transfer() {
    const uint32_t tensor = one_of(usable_);
    if (plan_.tensors[tensor].chunk_count == 0) return;
    vertex(one_in(2) ? plan::VertexKind::offload : plan::VertexKind::reload).tensor = tensor;
  }

  // Any order in which distance-0 predecessors come first.
  void order() {
    std::vector<uint32_t> missing;
    for (const plan::Vertex& vertex : plan_.vertices) {
      missing.push_back(static_cast<uint32_t>(std::count_if(vertex.predecessors.begin(), vertex.predecessors.end(),
                                                            [](const auto& before) { return before.distance == 0; })));
    }
    while (plan_.order.size() < plan_.vertices.size()) {
      std::vector<uint32_t> ready;
      for (uint32_t v = 0; v < missing.size(); ++v) {
        if (missing[v] == 0) ready.push_back(v);
      }
      const uint32_t next = one_of(ready);
      missing[next] = plan::kNone;
      plan_.order.push_back(next);
      for (uint32_t v = 0; v < missing.size(); ++v) {
        for (const plan::Predecessor& before : plan_.vertices[v].predecessors) {
          if (before.distance == 0 && before.vertex == next) --missing[v];
        }
      }
    }
  }

  plan::Plan plan_;
  std::vector<uint32_t> unborn_;  // transient tensors that are not allocated yet
  std::vector<uint32_t> live_;    // transient tensors that are
  std::vector<uint32_t> usable_;  // and the persistent ones
};

}  // namespace reprise::replay::testing
