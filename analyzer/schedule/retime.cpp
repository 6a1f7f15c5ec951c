#include "analyzer/schedule/retime.h"

#include <algorithm>
#include <functional>

#include "analyzer/schedule/played_stays.h"
#include "analyzer/schedule/room.h"
#include "analyzer/schedule/stay_mover.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kForever = ~uint64_t{0};
constexpr size_t kLook = 8;  // reloads that are tried when the first one cannot start

}  // namespace

// The least first.
class InstanceQueue {
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

class Retimer {
 public:
  Retimer(const TaskGraph& graph, const Machine& machine, uint64_t capacity)
      : machine_(machine), capacity_(static_cast<int64_t>(capacity)), played_(graph), stays_(played_) {}

  std::optional<RetimedSchedule> play(const Schedule& schedule, uint64_t most_ns) {
    clear();
    stays_.list(schedule);
    count_room();
    const uint32_t all = kPlayedRounds * played_.ops;
    while (at_hand_.op < all) {
      bool moved = start_op();
      for (const Tier tier : {Tier::host, Tier::ssd}) {
        if (start_out(tier)) moved = true;
        if (start_in(tier)) moved = true;
      }
      if (iteration_ns() > most_ns) return std::nullopt;
      if (moved) continue;
      const uint64_t next = std::min(at_hand_.end, transfers_.next_end());
      if (next == kForever) break;  // a schedule that does not fit; the caller's simulation will tell
      now_ = next;
      if (at_hand_.end == now_) end_op();
      for (LinkCopy& link : transfers_.out) end_out(link);
      for (LinkCopy& link : transfers_.in) end_in(link);
      end_hashes();
    }
    return retimed();
  }

 private:
  // A copy out or in, on the link of one tier.
  struct LinkCopy {
    uint64_t end = kForever;
    uint32_t instance = 0;
  };

  struct LinkTransfers {
    LinkCopy out[2], in[2];      // by tier
    InstanceQueue out_queue[2];  // by last use
    InstanceQueue hashes;        // clean offloads that run, by their end

    uint64_t next_end() const {
      const uint64_t hashed = hashes.empty() ? kForever : hashes.front().first;
      return std::min({out[0].end, out[1].end, in[0].end, in[1].end, hashed});
    }
  };

  // Instances that come back on one link.
  struct Line {
    std::vector<uint32_t> instances;  // by need
    std::vector<int64_t> chunks;      // of those before each, together
    size_t next = 0;                  // the first one that has not begun
    int64_t begun = 0;                // chunks of those behind it that have
  };

  // The next op, or the one that runs.
  struct OpAtHand {
    OpIndex op{0};
    uint64_t end = kForever;  // kForever: it has not started
    uint64_t idle_from = 0;   // since when no op runs
  };

  void clear() {
    for (Line& line : lines_) {
      line.instances.clear();
      line.chunks.assign(1, 0);
      line.next = 0;
      line.begun = 0;
    }
    for (InstanceQueue& queue : transfers_.out_queue) queue.clear();
    transfers_.hashes.clear();
    round_start_.clear();
    waits_.clear();
    for (LinkCopy* links : {transfers_.out, transfers_.in}) links[0] = links[1] = {};
    free_ = need_ = 0;
    now_ = 0;
    at_hand_ = {};
  }

  void count_room() {
    const uint32_t ops = played_.ops;
    changes_.assign(size_t{kPlayedRounds + 2} * ops + 1, 0);
    for (const StayInstance& instance : stays_.all()) {
      changes_[instance.first] += instance.chunks;
      changes_[instance.last + 1] -= instance.chunks;
    }
    int64_t used = stays_.chunks_always();
    for (OpIndex op{0}; op < (kPlayedRounds + 1) * ops; ++op) {
      used += changes_[op];
      changes_[op] = capacity_ - used;
    }
    room_.assign({changes_.data(), size_t{kPlayedRounds + 1} * ops});
    free_ = capacity_ - stays_.chunks_always() - stays_.chunks_at_start();
    for (OpIndex op{0}; op < (kPlayedRounds + 1) * ops; ++op) {
      for (const uint32_t number : stays_.first_at(op)) {
        const Stay& stay = stays_.stay_of(stays_[number]);
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
        line.chunks.push_back(line.chunks.back() + stays_[number].chunks);
      }
      for (size_t i = line.instances.size(); i-- > 0;) {
        StayInstance& instance = stays_[line.instances[i]];
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
    const auto is_urgent = [&](uint32_t number) { return stays_[number].latest_ns < instance.latest_ns; };
    const auto begin = other.instances.begin() + static_cast<std::ptrdiff_t>(other.next);
    const auto end = std::partition_point(begin, other.instances.end(), is_urgent);
    const size_t behind = static_cast<size_t>(end - other.instances.begin());
    return std::max<int64_t>(other.chunks[behind] - other.chunks[other.next] - other.begun, 0);
  }

  bool start_op() {
    if (at_hand_.end != kForever || at_hand_.op >= kPlayedRounds * played_.ops) return false;
    need_ = 0;
    bool waits = false;
    const auto beginning = stays_.first_at(at_hand_.op);
    for (const uint32_t number : beginning) {
      const StayInstance& instance = stays_[number];
      if (instance.in) continue;
      if (stays_.stay_of(instance).arrival == Arrival::reload) {
        waits = true;
      } else {
        need_ += instance.chunks;
      }
    }
    if (waits || need_ > free_) return false;
    record_wait();
    for (const uint32_t number : beginning) stays_[number].in = true;
    free_ -= need_;
    need_ = 0;
    at_hand_.end = now_ + played_.duration(at_hand_.op);
    if (at_hand_.op % played_.ops == 0) round_start_.push_back(now_);
    return true;
  }

  void record_wait() {
    if (now_ == at_hand_.idle_from || at_hand_.op / played_.ops != kPlayedRounds - 2) return;
    Wait wait{OpIndex{at_hand_.op % played_.ops}, now_ - at_hand_.idle_from, kNone};
    for (const uint32_t number : stays_.first_at(at_hand_.op)) {
      const StayInstance& instance = stays_[number];
      if (instance.in_ns == now_) wait.tensor = stays_.stay_of(instance).tensor;
    }
    waits_.push_back(wait);
  }

  void end_op() {
    at_hand_.idle_from = now_;
    at_hand_.end = kForever;
    const OpIndex op{at_hand_.op++};
    for (const uint32_t number : stays_.written_at(op)) {
      const Stay& stay = stays_.stay_of(stays_[number]);
      if (stay.departure == Departure::guarded) {
        transfers_.hashes.push({now_ + hash_ns(played_.graph.tensors[stay.tensor].size, machine_), number});
      } else {
        transfers_.out_queue[static_cast<size_t>(stay.to)].push({stays_[number].last, number});
      }
    }
    for (const uint32_t number : stays_.last_at(op)) {
      stays_[number].used = true;
      leave(number);
    }
  }

  // The next op to start.
  uint32_t place() const { return at_hand_.end == kForever ? at_hand_.op : at_hand_.op + 1; }

  void leave(uint32_t number) {
    StayInstance& instance = stays_[number];
    if (!instance.used || !instance.out) return;
    free_ += instance.chunks;
    instance.offload_end = place();
    if (instance.next != kNone) stays_[instance.next].host = true;
  }

  uint64_t copy_ns(const StayInstance& instance, Tier tier, bool out) const {
    const double link = out ? machine_.d2h_bytes_per_s : machine_.h2d_bytes_per_s;
    const double ssd = out ? machine_.ssd_write_bytes_per_s : machine_.ssd_read_bytes_per_s;
    const uint64_t size = played_.graph.tensors[stays_.stay_of(instance).tensor].size;
    if (tier == Tier::ssd)
      return analyzer::copy_ns(size, std::min(ssd, link), machine_.latency_ns + machine_.ssd_latency_ns);
    const bool shared = (out ? transfers_.out : transfers_.in)[1].end != kForever;
    return analyzer::copy_ns(size, shared ? link - std::min(ssd, link / 2) : link, machine_.latency_ns);
  }

  bool start_out(Tier tier) {
    LinkCopy& link = transfers_.out[static_cast<size_t>(tier)];
    InstanceQueue& queue = transfers_.out_queue[static_cast<size_t>(tier)];
    if (link.end != kForever || queue.empty()) return false;
    link.instance = queue.pop();
    link.end = now_ + copy_ns(stays_[link.instance], tier, true);
    return true;
  }

  void end_out(LinkCopy& link) {
    if (link.end != now_) return;
    link.end = kForever;
    stays_[link.instance].out = true;
    leave(link.instance);
  }

  void end_hashes() {
    while (!transfers_.hashes.empty() && transfers_.hashes.front().first == now_) {
      const uint32_t number = transfers_.hashes.pop();
      stays_[number].out = true;
      leave(number);
    }
  }

  // Starts the first of the next few reloads that link, room and host copy allow. One that the op at hand waits for
  // goes before all others.
  bool start_in(Tier tier) {
    LinkCopy& link = transfers_.in[static_cast<size_t>(tier)];
    Line& line = lines_[static_cast<size_t>(tier)];
    if (link.end != kForever) return false;
    const OpIndex op{at_hand_.op};
    for (size_t i = line.next, looked = 0; i < line.instances.size() && looked < kLook; ++i) {
      StayInstance& instance = stays_[line.instances[i]];
      if (instance.reload_begin != kNotYet) continue;
      ++looked;
      if (!instance.host) continue;
      const bool needed = instance.first <= op;
      if (!needed && op < instance.blocked_until) continue;
      if (instance.chunks + (needed ? 0 : need_ + reserved(instance, tier)) > free_) {
        if (needed) return false;
        continue;
      }
      if (const auto place = room_.last_below(op, instance.first, instance.chunks); !needed && place) {
        // Room only shrinks: where there is too little now, there is too little until the ops have gone by.
        instance.blocked_until = static_cast<uint32_t>(*place) + 1;
        continue;
      }
      if (!needed) room_.take(op, instance.first, instance.chunks);
      free_ -= instance.chunks;
      instance.reload_begin = place();
      link.instance = line.instances[i];
      link.end = now_ + copy_ns(instance, tier, false);
      line.begun += instance.chunks;
      for (; line.next < line.instances.size() && stays_[line.instances[line.next]].reload_begin != kNotYet;
           ++line.next) {
        line.begun -= stays_[line.instances[line.next]].chunks;
      }
      return true;
    }
    return false;
  }

  void end_in(LinkCopy& link) {
    if (link.end != now_) return;
    link.end = kForever;
    stays_[link.instance].in = true;
    stays_[link.instance].in_ns = now_;
  }

  RetimedSchedule retimed() {
    RetimedSchedule retimed;
    retimed.schedule = stays_.schedule();
    retimed.waits = waits_;
    if (round_start_.size() == kPlayedRounds) retimed.iteration_ns = iteration_ns();
    StayMover(played_, stays_, capacity_, changes_).move(retimed.schedule);
    return retimed;
  }

  // How long an iteration takes in the steady state, as far as it has been played.
  uint64_t iteration_ns() const {
    if (round_start_.size() < kPlayedRounds - 1) return 0;
    return (round_start_.size() == kPlayedRounds ? round_start_.back() : now_) - round_start_[kPlayedRounds - 2];
  }

  const Machine& machine_;
  const int64_t capacity_;
  const PlayedGraph played_;
  // What follows is of one play.
  PlayedStays stays_;
  Line lines_[2];  // by tier
  Room room_;
  std::vector<int64_t> changes_;  // by op, of room
  int64_t free_ = 0;
  int64_t need_ = 0;  // chunks that the op at hand still lacks for what it makes
  uint64_t now_ = 0;
  OpAtHand at_hand_;
  LinkTransfers transfers_;
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
