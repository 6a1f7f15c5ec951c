#include "analyzer/schedule/retime.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>

#include "analyzer/base/groups.h"
#include "analyzer/schedule/room.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kRounds = 4;
constexpr uint64_t kForever = ~uint64_t{0};
constexpr uint32_t kNotYet = ~uint32_t{0};
constexpr size_t kLook = 8;  // reloads that are tried when the first one cannot start

// The least first.
class Queue {
 public:
  using Entry = std::pair<uint64_t, uint32_t>;  // (rank, instance)
  bool empty() const { return heap_.empty(); }
  const Entry& front() const { return heap_.front(); }
  void clear() { heap_.clear(); }
  void push(Entry entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  uint32_t pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint32_t instance = heap_.back().second;
    heap_.pop_back();
    return instance;
  }

 private:
  std::vector<Entry> heap_;
};

// What all plays of a graph have in common. Ops are counted from 0.
struct PlayedGraph {
  explicit PlayedGraph(const TaskGraph& of) : graph(of), op_of_call(of.calls.size() + 1) {
    for (uint32_t call = 0; call < graph.calls.size(); ++call) {
      op_of_call[call] = ops;
      if (graph.calls[call].call.kind != plan::CallKind::op) continue;
      call_of_op.push_back(call);
      ++ops;
    }
    op_of_call.back() = ops;
    writes.assign(graph.tensors.size(), [&](auto&& put) {
      for (uint32_t op = 0; op < ops; ++op) {
        const GraphCall& entry = graph.calls[call_of_op[op]];
        for (const auto* list : {&entry.writes, &entry.unchanged}) {
          for (const uint32_t tensor : *list) put(tensor, op);
        }
      }
    });
    for (uint32_t op = 0; op < (kRounds + 1) * ops; ++op) {
      start_ns.push_back(start_ns.back() + static_cast<int64_t>(duration(op)));
    }
  }

  uint64_t duration(uint32_t op) const { return graph.calls[call_of_op[op % ops]].call.duration_ns; }

  // The last one of the ops `first` to `last` that writes, else the first one.
  uint32_t last_write(std::span<const uint32_t> writes_of_tensor, uint32_t first, uint32_t last) const {
    if (writes_of_tensor.empty()) return first;
    for (uint32_t round = last / ops + 1; round-- > first / ops;) {
      const auto behind = std::upper_bound(writes_of_tensor.begin(), writes_of_tensor.end(), last - round * ops);
      if (behind != writes_of_tensor.begin()) return std::max(first, *std::prev(behind) + round * ops);
    }
    return first;
  }

  const TaskGraph& graph;
  uint32_t ops = 0;
  std::vector<uint32_t> op_of_call, call_of_op;
  Groups writes;                        // by tensor, ops; also those that leave it as it was
  std::vector<int64_t> start_ns = {0};  // of each op in all rounds, if nothing waits
};

}  // namespace

class Retimer {
 public:
  Retimer(const TaskGraph& graph, const Machine& machine, uint64_t capacity)
      : graph_(graph),
        machine_(machine),
        capacity_(static_cast<int64_t>(capacity)),
        played_(graph),
        ops_(played_.ops) {}

  std::optional<RetimedSchedule> play(const Schedule& schedule, uint64_t most_ns) {
    clear();
    schedule_ = &schedule;
    list_stays();
    count_room();
    const uint32_t all = kRounds * ops_;
    while (op_ < all) {
      bool moved = start_op();
      for (const Tier tier : {Tier::host, Tier::ssd}) {
        if (start_out(tier)) moved = true;
        if (start_in(tier)) moved = true;
      }
      if (iteration_ns() > most_ns) return std::nullopt;
      if (moved) continue;
      const uint64_t hashed = hashes_.empty() ? kForever : hashes_.front().first;
      const uint64_t next = std::min({compute_end_, out_[0].end, out_[1].end, in_[0].end, in_[1].end, hashed});
      if (next == kForever) break;  // a schedule that does not fit; the caller's simulation will tell
      now_ = next;
      if (compute_end_ == now_) end_op();
      for (LinkCopy& link : out_) end_out(link);
      for (LinkCopy& link : in_) end_in(link);
      end_hashes();
    }
    return apply();
  }

 private:
  // One stay in one of the rounds that are simulated. Ops are counted over all rounds.
  struct StayInstance {
    int64_t latest_ns = 0;  // start of a copy in that is in time if no kernel waits for another one
    uint64_t in_ns = 0;     // when the copy in ended
    uint32_t stay = 0;
    uint32_t chunks = 0;
    uint32_t first = 0;               // op of its first use
    uint32_t last = 0;                // of its last one
    uint32_t written = 0;             // of the last write within it, if only by its order, for the copy out
    uint32_t next = kNone;            // instance of the same tensor that comes back from the copy
    uint32_t blocked_until = 0;       // op before which there is no room up to the first use
    uint32_t reload_begin = kNotYet;  // op that had started last when the copy in began
    uint32_t offload_end = 0;         // op at hand when the copy out was done and its memory became free
    bool used = false;                // the last use is over
    bool out = false;                 // the copy out is done, or there is none
    bool in = false;                  // resident
    bool host = false;                // a copy is on the host
  };

  struct LinkCopy {
    uint64_t end = kForever;  // of the copy that it carries
    uint32_t instance = 0;
  };

  // Instances that come back on one link.
  struct Line {
    std::vector<uint32_t> instances;  // by need
    std::vector<int64_t> chunks;      // of those before each, together
    size_t next = 0;                  // the first one that has not begun
    int64_t begun = 0;                // chunks of those behind it that have
  };

  void clear() {
    instances_.clear();
    for (Line& line : lines_) {
      line.instances.clear();
      line.chunks.assign(1, 0);
      line.next = 0;
      line.begun = 0;
    }
    for (Queue& queue : out_queue_) queue.clear();
    hashes_.clear();
    round_start_.clear();
    waits_.clear();
    for (LinkCopy* links : {out_, in_}) links[0] = links[1] = {};
    free_always_ = free_used_ = free_ = need_ = 0;
    now_ = idle_from_ = 0;
    op_ = 0;
    compute_end_ = kForever;
  }

  void list_stays() {
    stays_of_.assign(graph_.tensors.size(), [&](auto&& put) {
      for (uint32_t i = 0; i < schedule_->stays.size(); ++i) put(schedule_->stays[i].tensor, i);
    });
    for (uint32_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
      if (!stays_of_[tensor].empty()) list_instances(stays_of_[tensor], played_.writes[tensor]);
    }
    const auto group = [&](Groups& by_op, auto&& op_of) {
      by_op.assign(size_t{kRounds + 1} * ops_, [&](auto&& put) {
        for (uint32_t i = 0; i < instances_.size(); ++i) {
          if (const uint32_t op = op_of(instances_[i]); op != kNone) put(op, i);
        }
      });
    };
    // What is there at the start does not begin.
    group(first_instances_, [](const StayInstance& one) { return one.in ? kNone : one.first; });
    group(last_instances_, [](const StayInstance& one) { return one.last; });
    group(written_instances_, [](const StayInstance& one) { return one.out ? kNone : one.written; });
  }

  void list_instances(std::span<const uint32_t> stays, std::span<const uint32_t> writes) {
    uint32_t before = kNone;
    if (schedule_->stays[stays[0]].arrival == Arrival::always) {
      free_always_ += graph_.tensors[schedule_->stays[stays[0]].tensor].chunk_count;
      return;
    }
    // A stay that wraps into the first round.
    const Stay& wrapping = schedule_->stays[stays.back()];
    if (wrapping.wraps) before = add_instance(stays.back(), 0, played_.op_of_call[wrapping.end], writes, before);
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint32_t base = round * ops_;
      for (const uint32_t index : stays) {
        const Stay& stay = schedule_->stays[index];
        const uint32_t end = played_.op_of_call[stay.end] + base + (stay.wraps ? ops_ : 0);
        before = add_instance(index, played_.op_of_call[stay.begin] + base, end, writes, before);
      }
    }
  }

  uint32_t add_instance(uint32_t index, uint32_t first, uint32_t end, std::span<const uint32_t> writes,
                        uint32_t before) {
    const Stay& stay = schedule_->stays[index];
    const auto number = static_cast<uint32_t>(instances_.size());
    StayInstance instance;
    instance.stay = index;
    instance.first = first;
    instance.last = std::max(end, first + 1) - 1;
    instance.chunks = graph_.tensors[stay.tensor].chunk_count;
    instance.out = !has_offload(stay.departure);
    instance.host = before == kNone;
    instance.written = played_.last_write(writes, first, instance.last);
    instance.in = stay.wraps && first == 0 && before == kNone;
    if (instance.in) free_used_ += instance.chunks;
    instances_.push_back(instance);
    if (before != kNone) instances_[before].next = number;
    return number;
  }

  void count_room() {
    changes_.assign(size_t{kRounds + 2} * ops_ + 1, 0);
    for (const StayInstance& instance : instances_) {
      changes_[instance.first] += instance.chunks;
      changes_[instance.last + 1] -= instance.chunks;
    }
    int64_t used = free_always_;
    for (uint32_t op = 0; op < (kRounds + 1) * ops_; ++op) {
      used += changes_[op];
      changes_[op] = capacity_ - used;
    }
    room_.assign({changes_.data(), size_t{kRounds + 1} * ops_});
    free_ = capacity_ - free_always_ - free_used_;
    for (uint32_t op = 0; op < (kRounds + 1) * ops_; ++op) {
      for (const uint32_t number : std::as_const(first_instances_)[op]) {
        const Stay& stay = schedule_->stays[instances_[number].stay];
        if (stay.arrival == Arrival::reload) lines_[static_cast<size_t>(stay.from)].instances.push_back(number);
      }
    }
    find_latest();
  }

  // When each copy in starts at the latest: from the last one back, each is done before the next one on its link
  // starts.
  void find_latest() {
    for (const Tier tier : {Tier::host, Tier::ssd}) {
      Line& line = lines_[static_cast<size_t>(tier)];
      int64_t behind = INT64_MAX;
      for (const uint32_t number : line.instances) {
        line.chunks.push_back(line.chunks.back() + instances_[number].chunks);
      }
      for (size_t i = line.instances.size(); i-- > 0;) {
        StayInstance& instance = instances_[line.instances[i]];
        behind =
            std::min(behind, played_.start_ns[instance.first]) - static_cast<int64_t>(copy_ns(instance, tier, false));
        instance.latest_ns = behind;
      }
    }
  }

  // Memory that more urgent copies on the other link are about to take. The latest times grow with the place in line.
  int64_t reserved(const StayInstance& instance, Tier tier) const {
    const Line& other = lines_[tier == Tier::host ? 1 : 0];
    if (other.next == other.instances.size()) return 0;
    const auto is_urgent = [&](uint32_t number) { return instances_[number].latest_ns < instance.latest_ns; };
    const auto begin = other.instances.begin() + static_cast<std::ptrdiff_t>(other.next);
    const auto end = std::partition_point(begin, other.instances.end(), is_urgent);
    const size_t behind = static_cast<size_t>(end - other.instances.begin());
    return std::max<int64_t>(other.chunks[behind] - other.chunks[other.next] - other.begun, 0);
  }

  bool start_op() {
    if (compute_end_ != kForever || op_ >= kRounds * ops_) return false;
    need_ = 0;
    bool waits = false;
    for (const uint32_t number : first_instances_[op_]) {
      StayInstance& instance = instances_[number];
      if (instance.in) continue;
      if (schedule_->stays[instance.stay].arrival == Arrival::reload) {
        waits = true;
      } else {
        need_ += instance.chunks;
      }
    }
    if (waits || need_ > free_) return false;
    record_wait();
    for (const uint32_t number : first_instances_[op_]) {
      StayInstance& instance = instances_[number];
      if (!instance.in) instance.in = true;
    }
    free_ -= need_;
    need_ = 0;
    compute_end_ = now_ + played_.duration(op_);
    if (op_ % ops_ == 0) round_start_.push_back(now_);
    return true;
  }

  void record_wait() {
    if (now_ == idle_from_ || op_ / ops_ != kRounds - 2) return;
    Wait wait{static_cast<uint32_t>(op_ % ops_), now_ - idle_from_, kNone};
    for (const uint32_t number : first_instances_[op_]) {
      const StayInstance& instance = instances_[number];
      if (instance.in_ns == now_) wait.tensor = schedule_->stays[instance.stay].tensor;
    }
    waits_.push_back(wait);
  }

  void end_op() {
    idle_from_ = now_;
    compute_end_ = kForever;
    const uint32_t op = op_++;
    for (const uint32_t number : written_instances_[op]) {
      const Stay& stay = schedule_->stays[instances_[number].stay];
      if (stay.departure == Departure::guarded) {
        hashes_.push({now_ + hash_ns(graph_.tensors[stay.tensor].size, machine_), number});
      } else {
        out_queue_[static_cast<size_t>(stay.to)].push({instances_[number].last, number});
      }
    }
    for (const uint32_t number : last_instances_[op]) {
      instances_[number].used = true;
      leave(number);
    }
  }

  // The next op to start.
  uint32_t place() const { return compute_end_ == kForever ? op_ : op_ + 1; }

  void leave(uint32_t number) {
    StayInstance& instance = instances_[number];
    if (!instance.used || !instance.out) return;
    free_ += instance.chunks;
    instance.offload_end = place();
    if (instance.next != kNone) instances_[instance.next].host = true;
  }

  uint64_t copy_ns(const StayInstance& instance, Tier tier, bool out) const {
    const double link = out ? machine_.d2h_bytes_per_s : machine_.h2d_bytes_per_s;
    const double ssd = out ? machine_.ssd_write_bytes_per_s : machine_.ssd_read_bytes_per_s;
    const uint64_t size = graph_.tensors[schedule_->stays[instance.stay].tensor].size;
    if (tier == Tier::ssd)
      return analyzer::copy_ns(size, std::min(ssd, link), machine_.latency_ns + machine_.ssd_latency_ns);
    const bool shared = (out ? out_ : in_)[1].end != kForever;
    return analyzer::copy_ns(size, shared ? link - std::min(ssd, link / 2) : link, machine_.latency_ns);
  }

  bool start_out(Tier tier) {
    LinkCopy& link = out_[static_cast<size_t>(tier)];
    Queue& queue = out_queue_[static_cast<size_t>(tier)];
    if (link.end != kForever || queue.empty()) return false;
    link.instance = queue.pop();
    link.end = now_ + copy_ns(instances_[link.instance], tier, true);
    return true;
  }

  void end_out(LinkCopy& link) {
    if (link.end != now_) return;
    link.end = kForever;
    instances_[link.instance].out = true;
    leave(link.instance);
  }

  void end_hashes() {
    while (!hashes_.empty() && hashes_.front().first == now_) {
      const uint32_t number = hashes_.pop();
      instances_[number].out = true;
      leave(number);
    }
  }

  // Starts the first of the next few reloads that link, room and host copy allow. One that the op at hand waits for
  // goes before all others.
  bool start_in(Tier tier) {
    LinkCopy& link = in_[static_cast<size_t>(tier)];
    Line& line = lines_[static_cast<size_t>(tier)];
    if (link.end != kForever) return false;
    for (size_t i = line.next, looked = 0; i < line.instances.size() && looked < kLook; ++i) {
      StayInstance& instance = instances_[line.instances[i]];
      if (instance.reload_begin != kNotYet) continue;
      ++looked;
      if (!instance.host) continue;
      const bool needed = instance.first <= op_;
      if (!needed && op_ < instance.blocked_until) continue;
      if (instance.chunks + (needed ? 0 : need_ + reserved(instance, tier)) > free_) {
        if (needed) return false;
        continue;
      }
      if (const auto place = room_.last_below(op_, instance.first, instance.chunks); !needed && place) {
        // Room only shrinks: where there is too little now, there is too little until the ops have gone by.
        instance.blocked_until = static_cast<uint32_t>(*place) + 1;
        continue;
      }
      if (!needed) room_.take(op_, instance.first, instance.chunks);
      free_ -= instance.chunks;
      instance.reload_begin = place();
      link.instance = line.instances[i];
      link.end = now_ + copy_ns(instance, tier, false);
      line.begun += instance.chunks;
      for (; line.next < line.instances.size() && instances_[line.instances[line.next]].reload_begin != kNotYet;
           ++line.next) {
        line.begun -= instances_[line.instances[line.next]].chunks;
      }
      return true;
    }
    return false;
  }

  void end_in(LinkCopy& link) {
    if (link.end != now_) return;
    link.end = kForever;
    instances_[link.instance].in = true;
    instances_[link.instance].in_ns = now_;
  }

  // Moves the stays to where they began and ended in the last round but one, as far as there is room.
  RetimedSchedule apply() {
    RetimedSchedule retimed;
    retimed.schedule = *schedule_;
    retimed.waits = waits_;
    if (round_start_.size() == kRounds) retimed.iteration_ns = iteration_ns();
    std::vector<int64_t>& room = changes_;
    room.assign(size_t{ops_} + 1, 0);
    room[0] = capacity_ - free_always_;
    for (const Stay& stay : schedule_->stays) {
      if (stay.arrival == Arrival::always) continue;
      const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
      const uint32_t begin = played_.op_of_call[stay.begin];
      const uint32_t end = played_.op_of_call[stay.end];
      room[stay.wraps ? 0 : begin] -= chunks;
      room[end] += chunks;
      if (stay.wraps) room[begin] -= chunks;
    }
    for (uint32_t op = 1; op < ops_; ++op) room[op] += room[op - 1];
    move_stays(retimed.schedule, room);
    sort_stays(retimed.schedule);
    return retimed;
  }

  void move_stays(Schedule& schedule, std::vector<int64_t>& room) {
    std::vector<uint32_t> limit(graph_.tensors.size(), 0);  // where the tensor's stay before ends
    std::vector<uint32_t> order;
    for (uint32_t number = 0; number < instances_.size(); ++number) {
      if (instances_[number].first / ops_ == kRounds - 2) order.push_back(number);
    }
    // Ends first: memory must not be given away before it is free.
    for (const uint32_t number : order) {
      const StayInstance& instance = instances_[number];
      Stay& stay = schedule.stays[instance.stay];
      if (!has_offload(stay.departure) || stay.wraps) continue;
      const uint32_t base = (kRounds - 2) * ops_;
      const uint32_t to = instance.offload_end <= base ? 0 : instance.offload_end - base;
      uint32_t op = played_.op_of_call[stay.end];
      while (op < std::min(to, ops_) && room[op] >= instance.chunks) room[op++] -= instance.chunks;
      // The program's free takes the contents away: the copy out stands before it.
      const plan::Tensor& tensor = graph_.tensors[stay.tensor];
      const auto calls = static_cast<uint32_t>(graph_.calls.size());
      if (op > played_.op_of_call[stay.end])
        stay.end =
            std::min(op == ops_ ? calls : played_.call_of_op[op], is_persistent(tensor) ? calls : tensor.free_call);
      if (op == ops_ && to > ops_) go_on(stay, to - ops_, room);
    }
    for (const Stay& stay : schedule.stays) {
      if (stay.wraps) limit[stay.tensor] = played_.op_of_call[stay.end];
    }
    for (const uint32_t number : order) {
      const StayInstance& instance = instances_[number];
      Stay& stay = schedule.stays[instance.stay];
      const uint32_t base = (kRounds - 2) * ops_;
      const uint32_t floor = limit[stay.tensor];
      if (!stay.wraps) limit[stay.tensor] = played_.op_of_call[stay.end];
      if (stay.arrival != Arrival::reload || instance.reload_begin == kNotYet) continue;
      const uint32_t from = instance.reload_begin <= base ? 0 : instance.reload_begin - base;
      uint32_t op = played_.op_of_call[stay.begin];
      while (op > std::max(from, floor) && room[op - 1] >= instance.chunks) room[--op] -= instance.chunks;
      if (op < played_.op_of_call[stay.begin]) stay.begin = played_.call_of_op[op];
    }
  }

  // The copy out ends in the next iteration, at op `to`: so does the stay, if there is room, and no other one of the
  // tensor has begun.
  void go_on(Stay& stay, uint32_t to, std::vector<int64_t>& room) {
    if (!is_persistent(graph_.tensors[stay.tensor])) return;
    uint32_t limit = ops_ - 1;
    for (const uint32_t other : stays_of_[stay.tensor]) {
      limit = std::min(limit, played_.op_of_call[schedule_->stays[other].begin]);
    }
    const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
    uint32_t op = 0;
    while (op < std::min(to, limit) && room[op] >= chunks) room[op++] -= chunks;
    if (op == 0) return;
    stay.wraps = true;
    stay.clean_at_start = false;
    stay.end = played_.call_of_op[op];
  }

  // How long an iteration takes in the steady state, as far as it has been played.
  uint64_t iteration_ns() const {
    if (round_start_.size() < kRounds - 1) return 0;
    return (round_start_.size() == kRounds ? round_start_.back() : now_) - round_start_[kRounds - 2];
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  const int64_t capacity_;
  const PlayedGraph played_;
  const uint32_t ops_;
  // What follows is of one play.
  const Schedule* schedule_ = nullptr;
  std::vector<StayInstance> instances_;
  Groups stays_of_;                                              // by tensor
  Groups first_instances_, last_instances_, written_instances_;  // by op
  Line lines_[2];                                                // by tier
  Room room_;
  std::vector<int64_t> changes_;  // by op, of room
  int64_t free_always_ = 0;
  int64_t free_used_ = 0;
  int64_t free_ = 0;
  int64_t need_ = 0;  // chunks that the op at hand still lacks for what it makes
  uint64_t now_ = 0;
  uint32_t op_ = 0;
  uint64_t idle_from_ = 0;  // since when no op runs
  uint64_t compute_end_ = kForever;
  LinkCopy out_[2], in_[2];  // by tier
  Queue out_queue_[2];       // by last use
  Queue hashes_;             // clean offloads that run, by their end
  std::vector<uint64_t> round_start_;
  std::vector<Wait> waits_;
};

SchedulePlayer::SchedulePlayer(const TaskGraph& graph, const Machine& machine, uint64_t capacity)
    : retimer_(std::make_unique<Retimer>(graph, machine, capacity)) {}

SchedulePlayer::SchedulePlayer(SchedulePlayer&& other) noexcept = default;

SchedulePlayer::~SchedulePlayer() = default;

std::optional<RetimedSchedule> SchedulePlayer::play(const Schedule& schedule, uint64_t most_ns) {
  return retimer_->play(schedule, most_ns);
}

RetimedSchedule retime(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity) {
  return *SchedulePlayer(graph, machine, capacity).play(schedule, kForever);
}

}  // namespace reprise::analyzer
