#include "analyzer/simulate/timing.h"

#include <algorithm>

#include "analyzer/plan/vertex_kinds.h"

namespace reprise::analyzer {
namespace {

class VertexTiming {
 public:
  VertexTiming(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const Engines& engines)
      : tasks_(tasks), graph_(graph), machine_(machine), engines_(engines) {}

  TimedGraph run() {
    const size_t count = graph_.vertices.size();
    result_.vertices.resize(count);
    result_.ops.assign(tasks_.devices, 0);
    for (uint32_t v = 0; v < count; ++v) {
      const plan::Vertex& vertex = graph_.vertices[v];
      TimedVertex& entry = result_.vertices[v];
      entry.call = CallIndex(vertex.call);
      if (vertex.call == kNone) result_.transfers.push_back(v);
      if (plan::runs_op(vertex.kind)) {
        classify_op(tasks_.calls[vertex.call].call, entry);
      } else if (plan::copies(vertex.kind)) {
        classify_transfer(v, plan::copies_in(vertex.kind), entry);
      }
    }
    set_remaps();
    set_successors();
    return std::move(result_);
  }

 private:
  void classify_op(const plan::Call& call, TimedVertex& entry) {
    entry.device = call.device;
    entry.op = result_.ops[call.device]++;
    entry.length_ns = call.duration_ns;
    entry.transfer = true;
    if (call.op == trace::OpKind::copy_host_to_device) {
      entry.engine = engines_.to_device(call.device);
    } else if (call.op == trace::OpKind::copy_device_to_host) {
      entry.engine = engines_.to_host(call.device);
    } else if (call.op == trace::OpKind::copy_peer && tasks_.devices > 1) {
      entry.engine = engines_.to_peer(call.device);
    } else {
      entry.engine = engines_.compute(call.device);
      entry.transfer = false;
    }
  }

  void classify_transfer(uint32_t v, bool in, TimedVertex& entry) {
    const plan::Tensor& tensor = tasks_.tensors[graph_.vertices[v].tensor];
    const double link = in ? machine_.h2d_bytes_per_s : machine_.d2h_bytes_per_s;
    entry.device = tensor.device;
    if (graph_.vertices[v].clean) {
      entry.engine = engines_.hash(tensor.device);
      entry.length_ns = hash_ns(tensor.size, machine_);
      set_mapping(tensor, in, entry);
      return;
    }
    entry.transfer = true;
    if (graph_.tiers[v] == Tier::ssd) {
      const double ssd = in ? machine_.ssd_read_bytes_per_s : machine_.ssd_write_bytes_per_s;
      entry.engine = in ? engines_.from_ssd() : engines_.to_ssd();
      entry.link = engines_.link_of(tensor.device);
      entry.length_ns = copy_ns(tensor.size, std::min(ssd, link), machine_.latency_ns + machine_.ssd_latency_ns);
    } else {
      entry.engine = in ? engines_.to_device(tensor.device) : engines_.to_host(tensor.device);
      entry.length_ns = copy_ns(tensor.size, link, machine_.latency_ns);
    }
    entry.length_ns += graph_.extra_ns[v];
    set_mapping(tensor, in, entry);
  }

  // Of a chunk's 40 us on an H200 some 16 unmap it (decision 0037); what leaves without a copy is unmapped, too.
  void set_mapping(const plan::Tensor& tensor, bool in, TimedVertex& entry) {
    constexpr uint64_t kUnmapPercent = 40;
    if (!tasks_.transfers_map) return;
    const uint64_t all = machine_.remap_ns_per_chunk * tensor.chunk_count;
    entry.leaves = !in;
    entry.map_ns = (in ? 100 - kUnmapPercent : kUnmapPercent) * all / 100;
  }

  // Mapping a range anew takes time before the vertex that needs it, but for transfers that have theirs in any case.
  void set_remaps() {
    if (machine_.remap_ns_per_chunk == 0) return;
    std::vector<uint32_t> mapped(tasks_.tensors.size(), kNone);
    for (int round = 0; round < 2; ++round) {
      for (uint32_t v = 0; v < graph_.vertices.size(); ++v) {
        for (const plan::Acquire& acquire : graph_.vertices[v].acquires) {
          uint32_t& now = mapped[plan::root_of(tasks_.tensors, acquire.tensor)];
          if (round == 1 && now != acquire.placement && result_.vertices[v].map_ns == 0) {
            result_.vertices[v].length_ns += machine_.remap_ns_per_chunk * tasks_.tensors[acquire.tensor].chunk_count;
          }
          now = acquire.placement;
        }
      }
    }
  }

  void set_successors() {
    const auto count = static_cast<uint32_t>(graph_.vertices.size());
    result_.waits_now.assign(count, 0);
    result_.waits_before.assign(count, 0);
    result_.successors_begin.assign(size_t{count} + 1, 0);
    for (uint32_t v = 0; v < count; ++v) {
      for (const plan::Predecessor& p : graph_.vertices[v].predecessors) {
        ++result_.successors_begin[p.vertex + 1];
        ++(p.distance == 0 ? result_.waits_now : result_.waits_before)[v];
      }
    }
    for (uint32_t v = 0; v < count; ++v) result_.successors_begin[v + 1] += result_.successors_begin[v];
    result_.successors.resize(result_.successors_begin.back());
    std::vector<uint32_t> next(result_.successors_begin.begin(), result_.successors_begin.end() - 1);
    for (uint32_t v = 0; v < count; ++v) {
      for (const plan::Predecessor& p : graph_.vertices[v].predecessors) {
        result_.successors[next[p.vertex]++] = p.distance * count + v;
      }
    }
  }

  const TaskGraph& tasks_;
  const MemGraph& graph_;
  const Machine& machine_;
  const Engines& engines_;
  TimedGraph result_;
};

}  // namespace

TimedGraph time_graph(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const Engines& engines) {
  return VertexTiming(tasks, graph, machine, engines).run();
}

}  // namespace reprise::analyzer
