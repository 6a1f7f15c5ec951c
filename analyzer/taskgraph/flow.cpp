#include "analyzer/taskgraph/flow.h"

#include <algorithm>

namespace reprise::analyzer {

Flow::Flow(const TaskGraph& graph) : graph_(graph), tensors_(graph.tensors.size()), foreign_(graph.foreign_count) {
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].touched = is_persistent(graph.tensors[i]);
}

void Flow::take(std::vector<Dependency>& before, plan::EdgeKind kind) {
  std::sort(scratch_.begin(), scratch_.end());
  scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
  for (const Stamp& stamp : scratch_) before.push_back({stamp, kind});
  scratch_.clear();
}

void Flow::access(CallIndex call, const plan::OpAccess& access, Stamp stamp) {
  TensorFlow& flow = tensors_[access.tensor];
  const uint64_t size = graph_.tensors[access.tensor].size;
  // A pointer alone does not say which way a kernel walks from it: without a size the range is the whole tensor.
  const bool whole = access.size == 0 || !flow.touched || (graph_.calls[call].call.flags & trace::kOpOpaque) != 0;
  const bool writes = plan::writes(access) || !flow.touched;
  flow.touched = true;
  flow.bytes.access(whole ? 0 : access.offset, whole ? size : access.offset + access.size, writes, stamp, scratch_);
}

void Flow::op(CallIndex call, Stamp stamp, std::vector<Dependency>& before) {
  const GraphCall& entry = graph_.calls[call];
  for (const plan::OpAccess& item : entry.call.accesses) access(call, item, stamp);
  if ((entry.call.flags & trace::kOpOpaque) != 0) {
    for (uint32_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      if (is_alive(graph_.tensors[tensor], call))
        access(call, {tensor, trace::kAccessRead | trace::kAccessWrite}, stamp);
    }
  }
  for (const ForeignAccess& item : entry.foreign) foreign_[item.resource].access(0, 1, item.writes, stamp, scratch_);
  take(before, plan::EdgeKind::data);
  order_by_barriers(call, stamp, before);
}

void Flow::order_by_barriers(CallIndex call, Stamp stamp, std::vector<Dependency>& before) {
  const size_t first = before.size();
  if (graph_.calls[call].barrier) {
    for (const Stamp& earlier : since_barrier_) before.push_back({earlier, plan::EdgeKind::program});
    since_barrier_.clear();
  }
  if (has_barrier_ && before.size() == first) before.push_back({barrier_, plan::EdgeKind::program});
  if (graph_.calls[call].barrier) {
    barrier_ = stamp;
    has_barrier_ = true;
  } else {
    since_barrier_.push_back(stamp);
  }
}

void Flow::offload(uint32_t tensor, Stamp stamp, std::vector<Dependency>& before) {
  TensorFlow& flow = tensors_[tensor];
  flow.bytes.access(0, graph_.tensors[tensor].size, false, stamp, scratch_);
  flow.host.access(0, 1, true, stamp, scratch_);
  take(before, plan::EdgeKind::data);
}

void Flow::reload(uint32_t tensor, Stamp stamp, std::vector<Dependency>& before) {
  TensorFlow& flow = tensors_[tensor];
  flow.host.access(0, 1, false, stamp, scratch_);
  flow.bytes.access(0, graph_.tensors[tensor].size, true, stamp, scratch_);
  take(before, plan::EdgeKind::data);
}

void Flow::release(uint32_t tensor) {
  tensors_[tensor].bytes.forget();
  tensors_[tensor].host.forget();
  tensors_[tensor].touched = false;
}

std::vector<Stamp> Flow::frontier(uint32_t tensor) const {
  std::vector<Stamp> stamps;
  tensors_[tensor].bytes.frontier(stamps);
  std::sort(stamps.begin(), stamps.end());
  stamps.erase(std::unique(stamps.begin(), stamps.end()), stamps.end());
  return stamps;
}

}  // namespace reprise::analyzer
