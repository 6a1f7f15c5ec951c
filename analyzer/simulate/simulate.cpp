#include "analyzer/simulate/simulate.h"

#include <algorithm>

#include "analyzer/simulate/engines.h"
#include "analyzer/simulate/ready_set.h"
#include "analyzer/simulate/timing.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kFewestRounds = 4;

// The nodes of each engine in the order in which it works on them.
using Sequences = std::vector<std::vector<uint32_t>>;

// Node: a vertex in a round, that is round * number of vertices + vertex. Position: a call in a round, likewise.
class Simulation {
 public:
  Simulation(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine, const SimulationOptions& options)
      : tasks_(tasks),
        vertex_of_call_(graph.vertex_of_call),
        options_(options),
        rounds_(std::max(options.rounds, kFewestRounds)),
        engines_(machine, tasks.devices),
        noise_(options.noise),
        timed_(time_graph(tasks, graph, machine, engines_)),
        vertices_(static_cast<uint32_t>(graph.vertices.size())),
        calls_(static_cast<uint32_t>(tasks.calls.size())),
        waiting_(size_t{vertices_} * rounds_),
        done_(size_t{calls_} * rounds_, 0),
        start_(vertices_, 0),
        end_(vertices_, 0),
        end_of_ops_(rounds_, 0),
        queues_(engines_.count(), ReadySet(vertices_ * rounds_)),
        fixed_(engines_.count()),
        started_(tasks.devices),
        issued_(tasks.devices, 0) {
    set_waiting();
    if (options.critical_path) {
      causes_.assign(waiting_.size(), kNone);
      begun_ns_.assign(waiting_.size(), 0);
      last_on_.assign(engines_.count(), kNone);
    }
    for (uint32_t device = 0; device < tasks.devices; ++device) {
      started_[device].assign(size_t{timed_.ops[device]} * rounds_, 0);
    }
    for (uint32_t v = 0; v < vertices_; ++v) {
      if (timed_.vertices[v].call == kNone) transfers_.push_back(v);
    }
  }

  // `engine` takes these nodes and in this order only. They must be all of its nodes.
  void fix(Engines::Id engine, std::vector<uint32_t> order) {
    fixed_[engine].active = true;
    fixed_[engine].order = std::move(order);
  }
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
    if (!mapped && node / vertices_ == rounds_ - 2) end_[vertex] = now_;
    if (entry.map_ns == 0 || mapped != entry.leaves) return complete(node);
    if (!mapped) {
      queues_[engines_.mapping(entry.device)].insert(node);
      return;
    }
    if (!begun_ns_.empty()) begun_ns_[node] = now_;
    waiting_[node] = 0;
    if (!fixed_[entry.engine].active) queues_[entry.engine].insert(node);
  }

  void ready(uint32_t node, uint32_t vertex) {
    const Engines::Id engine = timed_.vertices[vertex].engine;
    if (timed_.vertices[vertex].map_ns > 0 && timed_.vertices[vertex].leaves) {
      waiting_[node] = 1;  // for its range to be unmapped
      queues_[engines_.mapping(timed_.vertices[vertex].device)].insert(node);
      return;
    }
    if (engine == Engines::kNone) {
      if (node / vertices_ == rounds_ - 2) start_[vertex] = end_[vertex] = now_;
      finished_.push_back(node);
    } else if (!fixed_[engine].active) {
      queues_[engine].insert(node);
    }
  }

  // `cause`: the node that ended; kNone: the program has made the call.
  void release_one(uint32_t node, uint32_t vertex, uint32_t cause) {
    if (--waiting_[node] != 0) return;
    if (!causes_.empty()) {
      causes_[node] = cause;
      begun_ns_[node] = now_;
    }
    ready(node, vertex);
  }

  void complete(uint32_t node) {
    const uint32_t round = node / vertices_;
    const uint32_t first = round * vertices_;
    const uint32_t vertex = node - first;
    const TimedVertex& entry = timed_.vertices[vertex];
    if (round < rounds_ - 1 || recorded_order_ != nullptr) --left_;
    if (entry.op != kNone) {
      end_of_ops_[round] = std::max(end_of_ops_[round], now_);
      if (round == rounds_ - 2) last_op_ = node;
    }
    if (entry.call != kNone) done_[size_t{round} * calls_ + entry.call] = 1;
    const uint32_t last = timed_.successors_begin[vertex + 1];
    for (uint32_t i = timed_.successors_begin[vertex]; i < last; ++i) {
      const uint32_t to = timed_.successors[i];
      if (first + to < waiting_.size()) release_one(first + to, to < vertices_ ? to : to - vertices_, node);
    }
  }

  // The program submits its calls in order, each when what it waited for is complete.
  void submit() {
    do {
      drain_finished();
      advance_completed();
      while (submitted_ < done_.size() && waited_for() <= completed_) {
        submit_call();
        drain_finished();
        advance_completed();
      }
    } while (!finished_.empty());
  }

  void submit_call() {
    if (call_ == 0) release_transfers();
    const uint32_t vertex = vertex_of_call_[call_];
    if (vertex == kNone) {
      done_[submitted_] = 1;
    } else {
      release_one(round_ * vertices_ + vertex, vertex, kNone);
    }
    ++submitted_;
    if (++call_ < calls_) return;
    call_ = 0;
    ++round_;
  }

  void release_transfers() {
    for (const uint32_t vertex : transfers_) release_one(round_ * vertices_ + vertex, vertex, kNone);
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

  // By the call to be submitted: so many positions must be complete.
  size_t waited_for() const {
    const size_t here = tasks_.calls[call_].waited;
    if (here > 0) return size_t{round_} * calls_ + here;
    return round_ == 0 ? 0 : size_t{round_ - 1} * calls_ + tasks_.waited_at_end;
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
    uint32_t node = kNone;
    if (fixed_[engine].active) {
      const Fixed& fixed = fixed_[engine];
      if (fixed.next < fixed.order.size() && waiting_[fixed.order[fixed.next]] == 0) node = fixed.order[fixed.next];
    } else if (!queues_[engine].empty()) {
      node = queues_[engine].least();
    }
    if (node == kNone) return kNone;
    const TimedVertex& entry = timed_.vertices[node % vertices_];
    const bool behind =
        entry.op != kNone && op_index(entry, node / vertices_) >= issued_[entry.device] + options_.window;
    return behind ? kNone : node;
  }

  // Of an op among those of its device over all rounds.
  size_t op_index(const TimedVertex& entry, uint32_t round) const {
    return size_t{round} * timed_.ops[entry.device] + entry.op;
  }

  void begin_mapping(Engines::Id engine, uint32_t node) {
    queues_[engine].erase(node);
    engines_.begin(engine, node, timed_.vertices[node % vertices_].map_ns, now_, 0);
  }

  void begin(Engines::Id engine, uint32_t node) {
    if (engines_.maps(engine)) return begin_mapping(engine, node);
    if (fixed_[engine].active) {
      ++fixed_[engine].next;
    } else {
      queues_[engine].erase(node);
    }
    const uint32_t round = node / vertices_;
    const uint32_t vertex = node - round * vertices_;
    const TimedVertex& entry = timed_.vertices[vertex];
    if (recorded_order_ != nullptr) (*recorded_order_)[engine].push_back(node);
    if (round == rounds_ - 2) start_[vertex] = now_;
    if (!causes_.empty()) {
      if (begun_ns_[node] < now_) causes_[node] = last_on_[engine];
      begun_ns_[node] = now_;
      last_on_[engine] = node;
    }
    const uint64_t length = entry.transfer ? noise_.length(entry.length_ns, node, engine, now_) : entry.length_ns;
    engines_.begin(engine, node, length, now_, entry.link);
    if (entry.op == kNone) return;
    std::vector<uint8_t>& started = started_[entry.device];
    size_t& issued = issued_[entry.device];
    started[op_index(entry, round)] = 1;
    while (issued < started.size() && started[issued] != 0) ++issued;
  }

  Prediction predict() const {
    Prediction prediction;
    const uint32_t measured = rounds_ - 2;
    const auto base = static_cast<int64_t>(end_of_ops_[measured - 1]);
    prediction.iteration_ns = (end_of_ops_[measured] - end_of_ops_[1]) / (measured - 1);
    prediction.start_ns.reserve(vertices_);
    prediction.end_ns.reserve(vertices_);
    for (uint32_t v = 0; v < vertices_; ++v) {
      prediction.start_ns.push_back(static_cast<int64_t>(start_[v]) - base);
      prediction.end_ns.push_back(static_cast<int64_t>(end_[v]) - base);
    }
    if (!causes_.empty()) prediction.critical_path = critical_path();
    return prediction;
  }

  // Back to where the iteration before ended.
  std::vector<CriticalStep> critical_path() const {
    std::vector<CriticalStep> path;
    uint32_t node = last_op_;
    while (node != kNone && causes_[node] != kNone && path.size() < waiting_.size()) {
      const uint32_t cause = causes_[node];
      path.push_back({node % vertices_, cause % vertices_});
      if (begun_ns_[cause] < end_of_ops_[rounds_ - 3]) break;
      node = cause;
    }
    return path;
  }

  struct Fixed {
    bool active = false;
    size_t next = 0;
    std::vector<uint32_t> order;
  };

  const TaskGraph& tasks_;
  const std::vector<uint32_t>& vertex_of_call_;
  SimulationOptions options_;
  uint32_t rounds_;
  Engines engines_;
  Noise noise_;
  TimedGraph timed_;
  uint32_t vertices_;
  uint32_t calls_;
  uint64_t now_ = 0;
  size_t left_ = 0;                   // nodes that must complete before the end
  std::vector<uint32_t> waiting_;     // node -> predecessors (and submission) still missing
  std::vector<uint8_t> done_;         // position -> complete
  std::vector<uint64_t> start_;       // of the round that is reported
  std::vector<uint64_t> end_;         // likewise
  std::vector<uint64_t> end_of_ops_;  // by round
  std::vector<ReadySet> queues_;      // by engine
  std::vector<Fixed> fixed_;          // by engine
  Sequences* recorded_order_ = nullptr;
  std::vector<std::vector<uint8_t>> started_;  // device, op index -> issued
  std::vector<size_t> issued_;                 // device -> all its ops below have started
  std::vector<uint32_t> transfers_;            // vertices that are no calls
  size_t submitted_ = 0;                       // position, and the same as round and call:
  uint32_t round_ = 0;
  uint32_t call_ = 0;
  size_t completed_ = 0;            // all positions below are complete
  std::vector<uint32_t> causes_;    // node -> what ended when it began, kNone: nothing; empty: not asked for
  std::vector<uint64_t> begun_ns_;  // node -> when it began; until then, when it could have begun
  std::vector<uint32_t> last_on_;   // engine -> node
  uint32_t last_op_ = kNone;        // node of the round that is reported
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
