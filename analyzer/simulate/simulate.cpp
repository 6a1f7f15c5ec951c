#include "analyzer/simulate/simulate.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>

#include "analyzer/simulate/engines.h"

namespace reprise::analyzer {
namespace {

using plan::VertexKind;

constexpr uint32_t kRounds = 5;
constexpr uint32_t kMeasured = 3;  // round whose times are reported: the pipeline has filled by then

class Simulation {
 public:
  Simulation(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const SimulationOptions& options)
      : tasks_(tasks),
        graph_(graph),
        machine_(machine),
        options_(options),
        engines_(machine),
        vertices_(static_cast<uint32_t>(graph.vertices.size())),
        calls_(static_cast<uint32_t>(tasks.calls.size())) {
    prepare();
  }

  Prediction run() {
    for (uint32_t node = 0; node < waiting_.size(); ++node) {
      if (waiting_[node] == 0) ready(node);
    }
    submit();
    dispatch();
    while (!engines_.idle()) {
      now_ = engines_.next().time;
      while (!engines_.idle() && engines_.next().time == now_) {
        const Engines::Done done = engines_.next();
        engines_.end(done.engine, now_);
        complete(done.node);
      }
      submit();
      dispatch();
    }
    return predict();
  }

 private:
  // Node: a vertex in a round. Position: a call in a round.
  uint32_t vertex_of(uint32_t node) const { return node % vertices_; }
  uint32_t round_of(uint32_t node) const { return node / vertices_; }

  void prepare() {
    const size_t nodes = size_t{vertices_} * kRounds;
    waiting_.assign(nodes, 0);
    start_.assign(nodes, 0);
    end_.assign(nodes, 0);
    successors_.resize(vertices_);
    done_.assign(size_t{calls_} * kRounds, 0);
    for (uint32_t v = 0; v < vertices_; ++v) {
      for (const plan::Predecessor& p : graph_.vertices[v].vertex.predecessors) {
        successors_[p.vertex].push_back({v, p.distance});
        for (uint32_t round = p.distance; round < kRounds; ++round) ++waiting_[round * vertices_ + v];
      }
    }
    // Every call waits to be submitted; transfers wait for the iteration before to be submitted.
    for (uint32_t& count : waiting_) ++count;
    engine_.resize(vertices_);
    length_.resize(vertices_);
    for (uint32_t v = 0; v < vertices_; ++v) classify(v);
    set_remaps();
    ops_before_.assign(vertices_, 0);
    uint32_t ops = 0;
    for (uint32_t v = 0; v < vertices_; ++v) {
      ops_before_[v] = ops;
      if (graph_.vertices[v].vertex.kind == VertexKind::op) ++ops;
    }
    ops_ = ops;
    started_.assign(size_t{ops_} * kRounds, 0);
  }

  void classify(uint32_t v) {
    const plan::Vertex& vertex = graph_.vertices[v].vertex;
    engine_[v] = kNoEngine;
    if (vertex.kind == VertexKind::op) {
      const plan::Call& call = tasks_.calls[vertex.call].call;
      engine_[v] = call.op == trace::OpKind::copy_host_to_device   ? kToDevice
                   : call.op == trace::OpKind::copy_device_to_host ? kToHost
                                                                   : kCompute;
      length_[v] = call.duration_ns;
    } else if (vertex.kind == VertexKind::offload || vertex.kind == VertexKind::reload) {
      classify_transfer(v, vertex.kind == VertexKind::reload);
      length_[v] += graph_.vertices[v].extra_ns;
    }
  }

  void classify_transfer(uint32_t v, bool in) {
    const uint64_t size = tasks_.tensors[graph_.vertices[v].vertex.tensor].size;
    const double link = in ? machine_.h2d_bytes_per_s : machine_.d2h_bytes_per_s;
    if (graph_.vertices[v].tier == Tier::ssd) {
      const double ssd = in ? machine_.ssd_read_bytes_per_s : machine_.ssd_write_bytes_per_s;
      engine_[v] = in ? kFromSsd : kToSsd;
      length_[v] = copy_ns(size, std::min(ssd, link), machine_.latency_ns + machine_.ssd_latency_ns);
    } else {
      engine_[v] = in ? kToDevice : kToHost;
      length_[v] = copy_ns(size, link, machine_.latency_ns);
    }
  }

  // Mapping a range anew takes time before the vertex that needs it.
  void set_remaps() {
    std::vector<uint32_t> mapped(tasks_.tensors.size(), kNone);
    for (int round = 0; round < 2; ++round) {
      for (uint32_t v = 0; v < vertices_; ++v) {
        for (const plan::Acquire& acquire : graph_.vertices[v].vertex.acquires) {
          uint32_t& now = mapped[acquire.tensor];
          if (round == 1 && now != acquire.placement) {
            length_[v] += machine_.remap_ns_per_chunk * tasks_.tensors[acquire.tensor].chunk_count;
          }
          now = acquire.placement;
        }
      }
    }
  }

  void release_one(uint32_t node) {
    if (--waiting_[node] == 0) ready(node);
  }

  void ready(uint32_t node) {
    const Engine engine = engine_[vertex_of(node)];
    if (engine == kNoEngine) {
      start_[node] = now_;
      finished_.push_back(node);
    } else {
      queues_[engine].push(node);
    }
  }

  void complete(uint32_t node) {
    const uint32_t vertex = vertex_of(node);
    end_[node] = now_;
    const uint32_t call = graph_.vertices[vertex].vertex.call;
    if (call != kNone) done_[round_of(node) * calls_ + call] = 1;
    for (const auto& [successor, distance] : successors_[vertex]) {
      const uint32_t round = round_of(node) + distance;
      if (round < kRounds) release_one(round * vertices_ + successor);
    }
  }

  // The program submits its calls in order, each when what it waited for is complete.
  void submit() {
    do {
      drain_finished();
      advance_completed();
      while (submitted_ < done_.size() && waited_for(submitted_) <= completed_) {
        if (submitted_ % calls_ == 0) release_transfers(static_cast<uint32_t>(submitted_ / calls_));
        const auto call = static_cast<uint32_t>(submitted_ % calls_);
        const auto round = static_cast<uint32_t>(submitted_ / calls_);
        const uint32_t vertex = graph_.vertex_of_call[call];
        if (vertex == kNone) {
          done_[submitted_] = 1;
        } else {
          release_one(round * vertices_ + vertex);
        }
        ++submitted_;
        drain_finished();
        advance_completed();
      }
    } while (!finished_.empty());
  }

  void drain_finished() {
    while (!finished_.empty()) {
      const uint32_t node = finished_.back();
      finished_.pop_back();
      complete(node);
    }
  }

  void advance_completed() {
    while (completed_ < done_.size() && done_[completed_] != 0) ++completed_;
  }

  size_t waited_for(size_t position) const {
    const size_t round = position / calls_;
    const size_t here = tasks_.calls[position % calls_].waited;
    if (here > 0) return round * calls_ + here;
    return round == 0 ? 0 : (round - 1) * calls_ + tasks_.waited_at_end;
  }

  void release_transfers(uint32_t round) {
    for (uint32_t v = 0; v < vertices_; ++v) {
      if (graph_.vertices[v].vertex.call == kNone) release_one(round * vertices_ + v);
    }
  }

  // Index of an op over all rounds.
  uint32_t op_index(uint32_t node) const { return round_of(node) * ops_ + ops_before_[vertex_of(node)]; }
  bool is_op(uint32_t node) const { return graph_.vertices[vertex_of(node)].vertex.kind == VertexKind::op; }

  void dispatch() {
    bool again = true;
    while (again) {
      again = false;
      for (const Engine engine : {kCompute, kToDevice, kToHost, kFromSsd, kToSsd}) {
        if (engines_.busy(engine) || queues_[engine].empty()) continue;
        // The queue holds ready vertices by priority; ops behind the window have to wait, and so do those behind them.
        const uint32_t node = queues_[engine].top();
        if (is_op(node) && op_index(node) >= issued_ + options_.window) continue;
        queues_[engine].pop();
        begin(engine, node);
        again = true;
      }
    }
  }

  void begin(Engine engine, uint32_t node) {
    start_[node] = now_;
    engines_.begin(engine, node, length_[vertex_of(node)], now_);
    if (!is_op(node)) return;
    started_[op_index(node)] = 1;
    while (issued_ < started_.size() && started_[issued_] != 0) ++issued_;
  }

  uint64_t end_of_ops(uint32_t round) const {
    uint64_t last = 0;
    for (uint32_t v = 0; v < vertices_; ++v) {
      if (graph_.vertices[v].vertex.kind == VertexKind::op) last = std::max(last, end_[round * vertices_ + v]);
    }
    return last;
  }

  Prediction predict() const {
    Prediction prediction;
    const uint64_t base = end_of_ops(kMeasured - 1);
    prediction.iteration_ns = (end_of_ops(kMeasured) - end_of_ops(kMeasured - 2)) / 2;
    for (uint32_t v = 0; v < vertices_; ++v) {
      const uint32_t node = kMeasured * vertices_ + v;
      prediction.start_ns.push_back(static_cast<int64_t>(start_[node]) - static_cast<int64_t>(base));
      prediction.end_ns.push_back(static_cast<int64_t>(end_[node]) - static_cast<int64_t>(base));
    }
    return prediction;
  }

  struct Successor {
    uint32_t vertex;
    uint8_t distance;
  };

  const TaskGraph& tasks_;
  const MemGraph& graph_;
  const Machine& machine_;
  SimulationOptions options_;
  Engines engines_;
  uint32_t vertices_;
  uint32_t calls_;
  uint32_t ops_ = 0;
  uint64_t now_ = 0;
  std::vector<uint32_t> waiting_;  // node -> predecessors (and submission) still missing
  std::vector<uint64_t> start_;
  std::vector<uint64_t> end_;
  std::vector<std::vector<Successor>> successors_;
  std::vector<uint8_t> done_;  // position -> complete
  std::vector<Engine> engine_;
  std::vector<uint64_t> length_;
  std::vector<uint32_t> ops_before_;
  std::vector<uint8_t> started_;  // op index -> issued
  size_t issued_ = 0;             // all ops below have started
  size_t submitted_ = 0;
  size_t completed_ = 0;            // all positions below are complete
  std::vector<uint32_t> finished_;  // nodes that take no time and wait to be completed
  std::array<std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>, kEngineCount> queues_;
};

}  // namespace

Prediction simulate(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine,
                    const SimulationOptions& options) {
  if (graph.vertices.empty()) return {};
  return Simulation(tasks, graph, machine, options).run();
}

std::vector<uint32_t> order_of(const TaskGraph& tasks, const MemGraph& graph, const Prediction& prediction) {
  std::vector<int64_t> key = prediction.start_ns;
  // The program calls ahead of the device: its free may come before the ops that still use the tensor have run. In the
  // order it stands behind them, where it takes effect.
  const auto delay = [&](uint32_t tensor, int64_t time) {
    if (is_persistent(tasks.tensors[tensor])) return;
    const uint32_t release = graph.vertex_of_call[tasks.tensors[tensor].free_call];
    key[release] = std::max(key[release], time);
  };
  for (uint32_t call = 0; call < tasks.calls.size(); ++call) {
    const plan::Call& entry = tasks.calls[call].call;
    if (entry.kind != plan::CallKind::op) continue;
    const int64_t time = key[graph.vertex_of_call[call]];
    for (const plan::Access& access : entry.accesses) delay(access.tensor, time);
    if ((entry.flags & trace::kOpOpaque) == 0) continue;
    for (uint32_t tensor = 0; tensor < tasks.tensors.size(); ++tensor) {
      if (is_alive(tasks.tensors[tensor], call)) delay(tensor, time);
    }
  }
  std::vector<uint32_t> order(graph.vertices.size());
  for (uint32_t v = 0; v < order.size(); ++v) order[v] = v;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key[a] < key[b]; });
  return order;
}

}  // namespace reprise::analyzer
