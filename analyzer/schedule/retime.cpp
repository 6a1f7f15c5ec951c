#include "analyzer/schedule/retime.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "analyzer/schedule/room.h"

namespace reprise::analyzer {
namespace {

constexpr uint32_t kRounds = 4;
constexpr uint64_t kForever = ~uint64_t{0};
constexpr size_t kLook = 8;  // reloads that are tried when the first one cannot start

class Retimer {
 public:
  Retimer(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity)
      : graph_(graph), machine_(machine), schedule_(schedule), capacity_(static_cast<int64_t>(capacity)) {
    number_ops();
    list_stays();
    count_room();
  }

  RetimedSchedule run() {
    const uint64_t all = uint64_t{kRounds} * ops_;
    while (op_ < all) {
      bool moved = start_op();
      for (const Tier tier : {Tier::host, Tier::ssd}) {
        if (start_out(tier)) moved = true;
        if (start_in(tier)) moved = true;
      }
      if (moved) continue;
      const uint64_t hashed = hashes_.empty() ? kForever : hashes_.begin()->first;
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
  // One stay in one of the rounds that are simulated.
  struct StayInstance {
    uint64_t first = 0;    // op of its first use, over all rounds
    uint64_t last = 0;     // of its last one
    uint64_t written = 0;  // of the last write within it, if only by its order, for the copy out
    int64_t chunks = 0;
    uint32_t stay = 0;
    uint32_t next = kNone;             // instance of the same tensor that comes back from the copy
    bool used = false;                 // the last use is over
    bool out = false;                  // the copy out is done, or there is none
    bool in = false;                   // resident
    bool host = false;                 // a copy is on the host
    uint64_t reload_begin = kForever;  // op that had started last when the copy in began
    int64_t latest_ns = 0;             // start of a copy in that is in time if no kernel waits for another one
    uint64_t offload_end = 0;          // op at hand when the copy out was done and its memory became free
    uint64_t in_ns = 0;                // when the copy in ended
  };

  struct LinkCopy {
    uint64_t end = kForever;  // of the copy that it carries
    uint32_t instance = 0;
  };

  // Instances that come back on one link.
  struct Line {
    std::vector<uint32_t> instances;  // by need
    std::vector<int64_t> chunks{0};   // of those before each, together
    size_t next = 0;                  // the first one that has not begun
    int64_t begun = 0;                // chunks of those behind it that have
  };

  void number_ops() {
    op_of_call_.resize(graph_.calls.size() + 1);
    for (uint32_t call = 0; call < graph_.calls.size(); ++call) {
      op_of_call_[call] = ops_;
      if (graph_.calls[call].call.kind != plan::CallKind::op) continue;
      call_of_op_.push_back(call);
      ++ops_;
    }
    op_of_call_.back() = ops_;
  }

  void list_stays() {
    stays_of_.resize(graph_.tensors.size());
    for (uint32_t i = 0; i < schedule_.stays.size(); ++i) stays_of_[schedule_.stays[i].tensor].push_back(i);
    first_instances_.assign(uint64_t{kRounds + 1} * ops_, {});
    last_instances_.assign(uint64_t{kRounds + 1} * ops_, {});
    written_instances_.assign(uint64_t{kRounds + 1} * ops_, {});
    std::vector<std::vector<uint32_t>> writes(graph_.tensors.size());
    for (uint32_t op = 0; op < ops_; ++op) {
      const GraphCall& entry = graph_.calls[call_of_op_[op]];
      for (const auto* list : {&entry.writes, &entry.unchanged}) {
        for (const uint32_t tensor : *list) writes[tensor].push_back(op);
      }
    }
    for (uint32_t tensor = 0; tensor < stays_of_.size(); ++tensor) {
      if (!stays_of_[tensor].empty()) list_instances(stays_of_[tensor], writes[tensor]);
    }
  }

  void list_instances(const std::vector<uint32_t>& stays, const std::vector<uint32_t>& writes) {
    uint32_t before = kNone;
    if (schedule_.stays[stays[0]].arrival == Arrival::always) {
      free_always_ += graph_.tensors[schedule_.stays[stays[0]].tensor].chunk_count;
      return;
    }
    // A stay that wraps into the first round.
    const Stay& wrapping = schedule_.stays[stays.back()];
    if (wrapping.wraps) before = add_instance(stays.back(), 0, op_of_call_[wrapping.end], writes, before);
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t base = uint64_t{round} * ops_;
      for (const uint32_t index : stays) {
        const Stay& stay = schedule_.stays[index];
        const uint64_t end = op_of_call_[stay.end] + base + (stay.wraps ? ops_ : 0);
        before = add_instance(index, op_of_call_[stay.begin] + base, end, writes, before);
      }
    }
  }

  uint32_t add_instance(uint32_t index, uint64_t first, uint64_t end, const std::vector<uint32_t>& writes,
                        uint32_t before) {
    const Stay& stay = schedule_.stays[index];
    const auto number = static_cast<uint32_t>(instances_.size());
    StayInstance instance;
    instance.stay = index;
    instance.first = first;
    instance.last = std::max(end, first + 1) - 1;
    instance.chunks = graph_.tensors[stay.tensor].chunk_count;
    instance.out = !has_offload(stay.departure);
    instance.host = before == kNone;
    instance.written = first;
    for (uint64_t round = first / ops_; round <= instance.last / ops_; ++round) {
      for (const uint32_t op : writes) {
        const uint64_t at = op + round * ops_;
        if (at >= first && at <= instance.last) instance.written = std::max(instance.written, at);
      }
    }
    const bool carried_in = stay.wraps && first == 0 && before == kNone;
    instance.in = carried_in;
    instances_.push_back(instance);
    if (carried_in) {
      free_used_ += instance.chunks;
    } else {
      first_instances_[first].push_back(number);
      if (stay.arrival == Arrival::reload) lines_[static_cast<size_t>(stay.from)].instances.push_back(number);
    }
    if (!instance.out) written_instances_[instance.written].push_back(number);
    last_instances_[instance.last].push_back(number);
    if (before != kNone) instances_[before].next = number;
    return number;
  }

  void count_room() {
    std::vector<int64_t> change(uint64_t{kRounds + 2} * ops_ + 1, 0);
    for (const StayInstance& instance : instances_) {
      change[instance.first] += instance.chunks;
      change[instance.last + 1] -= instance.chunks;
    }
    std::vector<int64_t> room;
    int64_t used = free_always_;
    for (uint64_t op = 0; op < uint64_t{kRounds + 1} * ops_; ++op) {
      used += change[op];
      room.push_back(capacity_ - used);
    }
    room_.emplace(std::move(room));
    free_ = capacity_ - free_always_ - free_used_;
    for (Line& line : lines_) {
      std::sort(line.instances.begin(), line.instances.end(), [&](uint32_t a, uint32_t b) {
        return std::tuple(instances_[a].first, a) < std::tuple(instances_[b].first, b);
      });
    }
    find_latest();
  }

  // When each copy in starts at the latest: from the last one back, each is done before the next one on its link
  // starts.
  void find_latest() {
    std::vector<int64_t> start(uint64_t{kRounds + 1} * ops_ + 1, 0);
    for (size_t op = 0; op + 1 < start.size(); ++op) {
      start[op + 1] = start[op] + static_cast<int64_t>(graph_.calls[call_of_op_[op % ops_]].call.duration_ns);
    }
    for (const Tier tier : {Tier::host, Tier::ssd}) {
      Line& line = lines_[static_cast<size_t>(tier)];
      int64_t behind = INT64_MAX;
      for (const uint32_t number : line.instances)
        line.chunks.push_back(line.chunks.back() + instances_[number].chunks);
      for (size_t i = line.instances.size(); i-- > 0;) {
        StayInstance& instance = instances_[line.instances[i]];
        behind = std::min(behind, start[instance.first]) - static_cast<int64_t>(copy_ns(instance, tier, false));
        instance.latest_ns = behind;
      }
    }
  }

  // Memory that more urgent copies on the other link are about to take. The latest times grow with the place in line.
  int64_t reserved(const StayInstance& instance, Tier tier) {
    Line& other = lines_[tier == Tier::host ? 1 : 0];
    const auto is_urgent = [&](uint32_t number) { return instances_[number].latest_ns < instance.latest_ns; };
    const auto begin = other.instances.begin() + static_cast<std::ptrdiff_t>(other.next);
    const auto end = std::partition_point(begin, other.instances.end(), is_urgent);
    const size_t behind = static_cast<size_t>(end - other.instances.begin());
    return std::max<int64_t>(other.chunks[behind] - other.chunks[other.next] - other.begun, 0);
  }

  bool start_op() {
    if (compute_end_ != kForever || op_ >= uint64_t{kRounds} * ops_) return false;
    need_ = 0;
    bool waits = false;
    for (const uint32_t number : first_instances_[op_]) {
      StayInstance& instance = instances_[number];
      if (instance.in) continue;
      if (schedule_.stays[instance.stay].arrival == Arrival::reload) {
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
    compute_end_ = now_ + graph_.calls[call_of_op_[op_ % ops_]].call.duration_ns;
    if (op_ % ops_ == 0) round_start_.push_back(now_);
    return true;
  }

  void record_wait() {
    if (now_ == idle_from_ || op_ / ops_ != kRounds - 2) return;
    Wait wait{static_cast<uint32_t>(op_ % ops_), now_ - idle_from_, kNone};
    for (const uint32_t number : first_instances_[op_]) {
      const StayInstance& instance = instances_[number];
      if (instance.in_ns == now_) wait.tensor = schedule_.stays[instance.stay].tensor;
    }
    waits_.push_back(wait);
  }

  void end_op() {
    idle_from_ = now_;
    compute_end_ = kForever;
    const uint64_t op = op_++;
    for (const uint32_t number : written_instances_[op]) {
      const Stay& stay = schedule_.stays[instances_[number].stay];
      if (stay.departure == Departure::guarded) {
        hashes_.insert({now_ + hash_ns(graph_.tensors[stay.tensor].size, machine_), number});
      } else {
        out_queue_[static_cast<size_t>(stay.to)].insert({instances_[number].last, number});
      }
    }
    for (const uint32_t number : last_instances_[op]) {
      instances_[number].used = true;
      leave(number);
    }
  }

  // The next op to start.
  uint64_t place() const { return compute_end_ == kForever ? op_ : op_ + 1; }

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
    const uint64_t size = graph_.tensors[schedule_.stays[instance.stay].tensor].size;
    if (tier == Tier::ssd)
      return analyzer::copy_ns(size, std::min(ssd, link), machine_.latency_ns + machine_.ssd_latency_ns);
    const bool shared = (out ? out_ : in_)[1].end != kForever;
    return analyzer::copy_ns(size, shared ? link - std::min(ssd, link / 2) : link, machine_.latency_ns);
  }

  bool start_out(Tier tier) {
    LinkCopy& link = out_[static_cast<size_t>(tier)];
    auto& queue = out_queue_[static_cast<size_t>(tier)];
    if (link.end != kForever || queue.empty()) return false;
    link.instance = queue.begin()->second;
    queue.erase(queue.begin());
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
    while (!hashes_.empty() && hashes_.begin()->first == now_) {
      const uint32_t number = hashes_.begin()->second;
      hashes_.erase(hashes_.begin());
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
      if (instance.reload_begin != kForever) continue;
      ++looked;
      if (!instance.host) continue;
      const bool needed = instance.first <= op_;
      if (instance.chunks + (needed ? 0 : need_ + reserved(instance, tier)) > free_) {
        if (needed) return false;
        continue;
      }
      if (!needed && room_->least(op_, instance.first) < instance.chunks) continue;
      if (!needed) room_->take(op_, instance.first, instance.chunks);
      free_ -= instance.chunks;
      instance.reload_begin = place();
      link.instance = line.instances[i];
      link.end = now_ + copy_ns(instance, tier, false);
      line.begun += instance.chunks;
      for (; line.next < line.instances.size() && instances_[line.instances[line.next]].reload_begin != kForever;
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
    retimed.schedule = schedule_;
    retimed.waits = std::move(waits_);
    if (round_start_.size() == kRounds) {
      retimed.iteration_ns = round_start_[kRounds - 1] - round_start_[kRounds - 2];
    }
    std::vector<int64_t> room(ops_);
    for (uint32_t op = 0; op < ops_; ++op) room[op] = capacity_ - free_always_;
    for (const Stay& stay : schedule_.stays) {
      if (stay.arrival == Arrival::always) continue;
      const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
      const uint32_t begin = op_of_call_[stay.begin];
      const uint32_t end = op_of_call_[stay.end];
      for (uint32_t op = stay.wraps ? 0 : begin; op < end; ++op) room[op] -= chunks;
      for (uint32_t op = begin; op < ops_ && stay.wraps; ++op) room[op] -= chunks;
    }
    move_stays(retimed.schedule, room);
    sort_stays(retimed.schedule);
    return retimed;
  }

  void move_stays(Schedule& schedule, std::vector<int64_t>& room) {
    std::vector<uint32_t> limit(graph_.tensors.size(), 0);  // where the tensor's stay before ends
    std::vector<uint32_t> order;
    for (uint32_t number = 0; number < instances_.size(); ++number) {
      const uint64_t round = instances_[number].first / ops_;
      if (round == kRounds - 2) order.push_back(number);
    }
    // Ends first: memory must not be given away before it is free.
    for (const uint32_t number : order) {
      const StayInstance& instance = instances_[number];
      Stay& stay = schedule.stays[instance.stay];
      if (!has_offload(stay.departure) || stay.wraps) continue;
      const uint64_t base = uint64_t{kRounds - 2} * ops_;
      const uint64_t to = instance.offload_end <= base ? 0 : instance.offload_end - base;
      uint32_t op = op_of_call_[stay.end];
      while (op < std::min<uint64_t>(to, ops_) && room[op] >= instance.chunks) room[op++] -= instance.chunks;
      // The program's free takes the contents away: the copy out stands before it.
      const plan::Tensor& tensor = graph_.tensors[stay.tensor];
      const auto calls = static_cast<uint32_t>(graph_.calls.size());
      if (op > op_of_call_[stay.end])
        stay.end = std::min(op == ops_ ? calls : call_of_op_[op], is_persistent(tensor) ? calls : tensor.free_call);
      if (op == ops_ && to > ops_) go_on(stay, first_begin(stay.tensor), to - ops_, room);
    }
    for (const Stay& stay : schedule.stays) {
      if (stay.wraps) limit[stay.tensor] = op_of_call_[stay.end];
    }
    for (const uint32_t number : order) {
      const StayInstance& instance = instances_[number];
      Stay& stay = schedule.stays[instance.stay];
      const uint64_t base = uint64_t{kRounds - 2} * ops_;
      const uint32_t floor = limit[stay.tensor];
      if (!stay.wraps) limit[stay.tensor] = op_of_call_[stay.end];
      if (stay.arrival != Arrival::reload || instance.reload_begin == kForever) continue;
      const uint64_t from = instance.reload_begin <= base ? 0 : instance.reload_begin - base;
      uint32_t op = op_of_call_[stay.begin];
      while (op > std::max<uint64_t>(from, floor) && room[op - 1] >= instance.chunks) room[--op] -= instance.chunks;
      if (op < op_of_call_[stay.begin]) stay.begin = call_of_op_[op];
    }
  }

  // The copy out ends in the next iteration, at op `to`: so does the stay, if there is room, and before `limit`.
  void go_on(Stay& stay, uint32_t limit, uint64_t to, std::vector<int64_t>& room) {
    if (!is_persistent(graph_.tensors[stay.tensor])) return;
    const uint32_t chunks = graph_.tensors[stay.tensor].chunk_count;
    uint32_t op = 0;
    while (op < std::min<uint64_t>(to, limit) && room[op] >= chunks) room[op++] -= chunks;
    if (op == 0) return;
    stay.wraps = true;
    stay.clean_at_start = false;
    stay.end = call_of_op_[op];
  }

  uint32_t first_begin(uint32_t tensor) const {
    uint32_t first = ops_ - 1;
    for (const uint32_t stay : stays_of_[tensor]) first = std::min(first, op_of_call_[schedule_.stays[stay].begin]);
    return first;
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  const Schedule& schedule_;
  int64_t capacity_;
  uint32_t ops_ = 0;
  std::vector<uint32_t> op_of_call_, call_of_op_;
  std::vector<StayInstance> instances_;
  std::vector<std::vector<uint32_t>> stays_of_;                                              // by tensor
  std::vector<std::vector<uint32_t>> first_instances_, last_instances_, written_instances_;  // by op
  Line lines_[2];                                                                            // by tier
  std::optional<Room> room_;
  int64_t free_always_ = 0;
  int64_t free_used_ = 0;
  int64_t free_ = 0;
  int64_t need_ = 0;  // chunks that the op at hand still lacks for what it makes
  uint64_t now_ = 0;
  uint64_t op_ = 0;
  uint64_t idle_from_ = 0;  // since when no op runs
  uint64_t compute_end_ = kForever;
  LinkCopy out_[2], in_[2];                               // by tier
  std::set<std::pair<uint64_t, uint32_t>> out_queue_[2];  // (last use, instance)
  std::set<std::pair<uint64_t, uint32_t>> hashes_;        // clean offloads that run: (end, instance)
  std::vector<uint64_t> round_start_;
  std::vector<Wait> waits_;
};

}  // namespace

RetimedSchedule retime(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity) {
  return Retimer(graph, machine, schedule, capacity).run();
}

}  // namespace reprise::analyzer
