#include "analyzer/simulate/simulate.h"

#include <algorithm>

#include "analyzer/simulate/call_submission.h"
#include "analyzer/simulate/engines.h"
#include "analyzer/simulate/node_causes.h"
#include "analyzer/simulate/timing.h"
#include "analyzer/simulate/turns.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kFewestRounds = 4;

// The nodes of each engine in the order in which it works on them.
using Sequences = std::vector<std::vector<uint32_t>>;

// Node: a vertex in a round, that is round * number of vertices + vertex.
class Simulation {
 public:
  Simulation(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const SimulationOptions& options)
      : rounds_(std::max(options.rounds, kFewestRounds)),
        vertices_(static_cast<uint32_t>(graph.vertices.size())),
        engines_(machine, tasks.devices),
        noise_(options.noise),
        timed_(time_graph(tasks, graph, machine, engines_)),
        program_(tasks, graph.vertex_of_call, rounds_),
        turns_(engines_.count(), vertices_ * rounds_),
        window_(timed_.ops, rounds_, options.window),
        waiting_(timed_.waits_now.size() * rounds_) {
    measured_.start_ns.assign(vertices_, 0);
    measured_.end_ns.assign(vertices_, 0);
    measured_.end_of_ops_ns.assign(rounds_, 0);
    set_waiting();
    if (options.critical_path) causes_.keep(waiting_.size(), engines_.count());
  }

  // `engine` takes these nodes and in this order only. They must be all of its nodes.
  void fix(Engines::Id engine, std::vector<uint32_t> order) { turns_.fix(engine, std::move(order)); }
  void record_order(Sequences& to) {
    to.assign(engines_.count(), {});
    recorded_order_ = &to;
  }
  const Engines& engines() const { return engines_; }
  // Every engine's nodes in the plan's serial order.
  Sequences serial_order() const {
    Sequences result(engines_.count());
    for (uint32_t node = 0; node < vertices_ * rounds_; ++node) {
      const Engines::Id engine = timed_.vertices[node % vertices_].engine;
      if (engine != Engines::kNone) result[engine].push_back(node);
    }
    return result;
  }

  Prediction run() {
    // What lies behind the round that is reported matters only where the order is recorded.
    left_ = recorded_order_ != nullptr ? waiting_.size() : size_t{vertices_} * (rounds_ - 1);
    submit();
    dispatch();
    Engines::Done done = engines_.next();
    while (done.engine != Engines::kNone && left_ > 0) {
      now_ = done.time;
      do {
        engines_.end(done.engine, now_);
        end_stage(done.engine, done.node);
        done = engines_.next();
      } while (done.engine != Engines::kNone && done.time == now_);
      submit();
      dispatch();
      done = engines_.next();
    }
    return predict();
  }

 private:
  // Times of the reported round. Only `end_of_ops_ns` has all rounds.
  struct MeasuredRound {
    std::vector<uint64_t> start_ns, end_ns;  // by vertex
    std::vector<uint64_t> end_of_ops_ns;     // by round
    uint32_t last_op = kNone;                // node
  };

  // Every call waits to be submitted; transfers wait for the iteration before to be submitted.
  void set_waiting() {
    for (uint32_t v = 0; v < vertices_; ++v) {
      waiting_[v] = 1 + timed_.waits_now[v];
      const uint32_t count = waiting_[v] + timed_.waits_before[v];
      for (uint32_t round = 1; round < rounds_; ++round) waiting_[size_t{round} * vertices_ + v] = count;
    }
  }

  // A tensor that leaves is unmapped and then copied, one that comes is copied and then mapped: by another engine, so
  // that copies of others go on meanwhile. Only then is the transfer complete.
  void end_stage(Engines::Id engine, uint32_t node) {
    const uint32_t vertex = node % vertices_;
    const TimedVertex& entry = timed_.vertices[vertex];
    const bool mapped = engines_.maps(engine);
    if (!mapped && node / vertices_ == rounds_ - 2) measured_.end_ns[vertex] = now_;
    if (entry.map_ns == 0 || mapped != entry.leaves) return complete(node);
    if (!mapped) return turns_.put(engines_.mapping(entry.device), node);
    causes_.may_begin(node, now_);
    waiting_[node] = 0;
    turns_.put(entry.engine, node);
  }

  void ready(uint32_t node, uint32_t vertex) {
    const TimedVertex& entry = timed_.vertices[vertex];
    if (entry.map_ns > 0 && entry.leaves) {
      waiting_[node] = 1;  // for its range to be unmapped
      turns_.put(engines_.mapping(entry.device), node);
      return;
    }
    if (entry.engine != Engines::kNone) return turns_.put(entry.engine, node);
    if (node / vertices_ == rounds_ - 2) measured_.start_ns[vertex] = measured_.end_ns[vertex] = now_;
    finished_.push_back(node);
  }

  // `cause`: the node that ended; kNone: the program has made the call.
  void release_one(uint32_t node, uint32_t vertex, uint32_t cause) {
    if (--waiting_[node] != 0) return;
    causes_.released(node, cause, now_);
    ready(node, vertex);
  }

  void complete(uint32_t node) {
    const uint32_t round = node / vertices_;
    const uint32_t first = round * vertices_;
    const uint32_t vertex = node - first;
    const TimedVertex& entry = timed_.vertices[vertex];
    if (round < rounds_ - 1 || recorded_order_ != nullptr) --left_;
    if (entry.op != kNone) {
      measured_.end_of_ops_ns[round] = std::max(measured_.end_of_ops_ns[round], now_);
      if (round == rounds_ - 2) measured_.last_op = node;
    }
    if (entry.call != kNone) program_.complete(round, entry.call);
    const uint32_t last = timed_.successors_begin[vertex + 1];
    for (uint32_t i = timed_.successors_begin[vertex]; i < last; ++i) {
      const uint32_t to = timed_.successors[i];
      if (first + to < waiting_.size()) release_one(first + to, to < vertices_ ? to : to - vertices_, node);
    }
  }

  void submit() {
    drain_finished();
    while (program_.may_submit()) {
      const uint32_t first = program_.round() * vertices_;
      if (program_.begins_round()) {
        for (const uint32_t vertex : timed_.transfers) release_one(first + vertex, vertex, kNone);
      }
      if (const uint32_t vertex = program_.submit(); vertex != kNone) release_one(first + vertex, vertex, kNone);
      drain_finished();
    }
  }

  void drain_finished() {
    while (!finished_.empty()) {
      const uint32_t node = finished_.back();
      finished_.pop_back();
      complete(node);
    }
  }

  void dispatch() {
    bool again = true;
    while (again) {
      again = false;
      for (Engines::Id engine = 0; engine < engines_.count(); ++engine) {
        if (engines_.busy(engine)) continue;
        const uint32_t node = candidate(engine);
        if (node == kNone) continue;
        begin(engine, node);
        again = true;
      }
    }
  }

  // The node whose turn it is on the engine. An op behind the window has to wait, and so do the nodes behind it.
  uint32_t candidate(Engines::Id engine) const {
    const uint32_t node = turns_.next(engine, waiting_);
    if (node == kNone) return kNone;
    const TimedVertex& entry = timed_.vertices[node % vertices_];
    return entry.op != kNone && window_.is_behind(entry, node / vertices_) ? kNone : node;
  }

  void begin(Engines::Id engine, uint32_t node) {
    turns_.take(engine, node);
    const uint32_t round = node / vertices_;
    const uint32_t vertex = node - round * vertices_;
    const TimedVertex& entry = timed_.vertices[vertex];
    if (engines_.maps(engine)) return engines_.begin(engine, node, entry.map_ns, now_, 0);
    if (recorded_order_ != nullptr) (*recorded_order_)[engine].push_back(node);
    if (round == rounds_ - 2) measured_.start_ns[vertex] = now_;
    causes_.begins(node, engine, now_);
    const uint64_t length = entry.transfer ? noise_.length(entry.length_ns, node, engine, now_) : entry.length_ns;
    engines_.begin(engine, node, length, now_, entry.link);
    if (entry.op != kNone) window_.issue(entry, round);
  }

  Prediction predict() const {
    Prediction prediction;
    const uint32_t measured = rounds_ - 2;
    const std::vector<uint64_t>& end_of_ops = measured_.end_of_ops_ns;
    const auto base = static_cast<int64_t>(end_of_ops[measured - 1]);
    prediction.iteration_ns = (end_of_ops[measured] - end_of_ops[1]) / (measured - 1);
    prediction.start_ns.reserve(vertices_);
    prediction.end_ns.reserve(vertices_);
    for (uint32_t v = 0; v < vertices_; ++v) {
      prediction.start_ns.push_back(static_cast<int64_t>(measured_.start_ns[v]) - base);
      prediction.end_ns.push_back(static_cast<int64_t>(measured_.end_ns[v]) - base);
    }
    prediction.critical_path = causes_.path(measured_.last_op, end_of_ops[measured - 1], vertices_);
    return prediction;
  }

  const uint32_t rounds_;
  const uint32_t vertices_;
  Engines engines_;
  Noise noise_;
  const TimedGraph timed_;
  CallSubmission program_;
  EngineTurns turns_;
  IssueWindow window_;
  NodeCauses causes_;
  MeasuredRound measured_;
  uint64_t now_ = 0;
  size_t left_ = 0;                // nodes that must complete before the end
  std::vector<uint32_t> waiting_;  // node -> predecessors (and submission) still missing
  Sequences* recorded_order_ = nullptr;
  std::vector<uint32_t> finished_;  // nodes that take no time and wait to be completed
};

void fix_order(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const SimulationOptions& options,
               Simulation& simulation) {
  Sequences order = simulation.serial_order();
  if (options.dispatch == Dispatch::fixed_best) {
    SimulationOptions undisturbed = options;
    undisturbed.dispatch = Dispatch::free;
    undisturbed.noise = {};
    Simulation first(tasks, graph, machine, undisturbed);
    first.record_order(order);
    first.run();
  }
  const Engines& engines = simulation.engines();
  if (options.dispatch == Dispatch::fixed_kernels) {
    for (uint32_t device = 0; device < tasks.devices; ++device) {
      simulation.fix(engines.compute(device), std::move(order[engines.compute(device)]));
    }
    return;
  }
  for (Engines::Id engine = 0; engine < engines.count(); ++engine) {
    if (!engines.maps(engine)) simulation.fix(engine, std::move(order[engine]));
  }
}

}  // namespace

Prediction simulate(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine,
                    const SimulationOptions& options) {
  if (graph.vertices.empty()) return {};
  Simulation simulation(tasks, graph, machine, options);
  if (options.dispatch != Dispatch::free) fix_order(tasks, graph, machine, options, simulation);
  return simulation.run();
}

}  // namespace reprise::analyzer
