#include "analyzer/schedule/tiers.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "analyzer/base/groups.h"
#include "analyzer/schedule/busy_times.h"
#include "analyzer/schedule/room.h"

namespace reprise::analyzer {
namespace {

constexpr int64_t kLeastPatience = 1024;  // part of the iteration
constexpr int kBisections = 4;
constexpr int64_t kUnlimitedPatience = INT64_MAX;
constexpr int64_t kReadPatience = 2;  // a read may be so many times as early as a write may be late

// The copy that one offload makes, or the one that was there before the program (no offload).
struct Copy {
  uint32_t offload = kNone;       // stay
  std::vector<uint32_t> reloads;  // stays that come from it
  uint64_t bytes = 0;
  uint32_t begin = 0;  // positions; it wraps when begin >= end
  uint32_t end = 0;
  uint64_t length_ns = 0;
  Tier tier = Tier::host;

  bool covers(uint32_t position) const {
    return begin < end ? begin <= position && position < end : position >= begin || position < end;
  }
};

class Assignment {
 public:
  Assignment(const TaskGraph& graph, const Machine& machine, Schedule& schedule)
      : graph_(graph),
        machine_(machine),
        schedule_(schedule),
        positions_(static_cast<uint32_t>(graph.calls.size()) + 1) {
    start_ns_.push_back(0);
    for (const GraphCall& entry : graph.calls) start_ns_.push_back(start_ns_.back() + entry.call.duration_ns);
  }

  TierUse run() {
    list_copies();
    host_ = use_of(Tier::host);
    TierUse use;
    if (spread()) host_ = use_of(Tier::host);
    use.fits = relieve_host();
    for (const Copy& copy : copies_) settle(copy, use);
    use.host_peak_bytes = *std::max_element(host_.begin(), host_.end());
    const std::vector<uint64_t> ssd = use_of(Tier::ssd);
    use.ssd_peak_bytes = *std::max_element(ssd.begin(), ssd.end());
    if (machine_.ssd_bytes != 0 && use.ssd_peak_bytes > machine_.ssd_bytes) use.fits = false;
    return use;
  }

 private:
  void list_copies() {
    const Groups stays_of(graph_.tensors.size(), [&](auto&& put) {
      for (uint32_t i = 0; i < schedule_.stays.size(); ++i) put(schedule_.stays[i].tensor, i);
    });
    for (uint32_t tensor = 0; tensor < stays_of.size(); ++tensor) {
      if (graph_.tensors[tensor].chunk_count > 0) list_copies(tensor, stays_of[tensor]);
    }
  }

  void list_copies(uint32_t tensor, std::span<const uint32_t> stays) {
    const size_t before = copies_.size();
    for (size_t i = 0; i < stays.size(); ++i) {
      if (schedule_.stays[stays[i]].departure == Departure::offload) add_copy(stays, i);
    }
    const bool resident = stays.size() == 1 && schedule_.stays[stays[0]].arrival == Arrival::always;
    if (copies_.size() > before || resident || !is_persistent(graph_.tensors[tensor])) return;
    Copy copy;  // never written: on the host for ever
    copy.reloads.assign(stays.begin(), stays.end());
    copy.bytes = graph_.tensors[tensor].size;
    copy.end = positions_;
    copy.length_ns = start_ns_.back();
    copies_.push_back(std::move(copy));
  }

  // From the offload on, around the circle, to the last reload before the next offload.
  void add_copy(std::span<const uint32_t> stays, size_t index) {
    const Stay& from = schedule_.stays[stays[index]];
    Copy copy;
    copy.offload = stays[index];
    copy.bytes = graph_.tensors[from.tensor].size;
    copy.begin = from.end;
    copy.end = from.end;
    copy.tier = machine_.has_ssd() ? from.to : Tier::host;
    for (size_t step = 1; step <= stays.size(); ++step) {
      const Stay& next = schedule_.stays[stays[(index + step) % stays.size()]];
      if (next.arrival != Arrival::reload) break;
      copy.reloads.push_back(stays[(index + step) % stays.size()]);
      copy.end = next.begin;
      if (next.departure != Departure::drop && next.departure != Departure::guarded) break;
    }
    copy.length_ns = copy.begin < copy.end ? start_ns_[copy.end] - start_ns_[copy.begin]
                                           : start_ns_.back() - start_ns_[copy.begin] + start_ns_[copy.end];
    copies_.push_back(std::move(copy));
  }

  // Position -> bytes. From the changes at each position: copies are many, and long.
  std::vector<uint64_t> use_of(Tier tier) const {
    std::vector<uint64_t> use(size_t{positions_} + 1, 0);
    for (const Copy& copy : copies_) {
      if (copy.tier != tier) continue;
      use[copy.begin] += copy.bytes;
      use[copy.end] -= copy.bytes;
      if (copy.begin >= copy.end) use[0] += copy.bytes;
    }
    for (uint32_t p = 1; p < positions_; ++p) use[p] += use[p - 1];
    use.resize(positions_);
    return use;
  }

  void take_from_host(const Copy& copy) {
    const auto take = [&](uint32_t begin, uint32_t end) {
      for (uint32_t p = begin; p < end; ++p) host_[p] -= copy.bytes;
    };
    take(copy.begin, copy.begin < copy.end ? copy.end : positions_);
    if (copy.begin >= copy.end) take(0, copy.end);
  }

  // Where the host is too small, some copies go to the SSD, in the order in which they leave: those that it can write
  // and read back with little waiting, by what is reckoned ahead. How little: the least with which the host fits, so
  // that host and SSD work side by side throughout, and no copy waits for the slower one.
  bool spread() {
    if (machine_.host_bytes == 0 || !machine_.has_ssd()) return false;
    if (*std::max_element(host_.begin(), host_.end()) <= machine_.host_bytes) return false;
    std::vector<Copy*> order;
    for (Copy& copy : copies_) {
      if (copy.tier == Tier::host && copy.offload != kNone && !schedule_.stays[copy.offload].not_to_ssd)
        order.push_back(&copy);
    }
    std::stable_sort(order.begin(), order.end(), [](const Copy* a, const Copy* b) { return a->begin < b->begin; });
    int64_t enough = static_cast<int64_t>(start_ns_.back()) / kLeastPatience + 1;
    while (!spread(order, enough)) {
      enough *= 2;
      if (enough > static_cast<int64_t>(start_ns_.back())) return false;
    }
    int64_t too_little = enough / 2;
    for (int step = 0; step < kBisections; ++step) {
      const int64_t middle = (too_little + enough) / 2;
      (spread(order, middle) ? enough : too_little) = middle;
    }
    return spread(order, enough);
  }

  // True: the host fits. Else nothing is changed.
  bool spread(const std::vector<Copy*>& order, int64_t patience) {
    for (Copy* copy : order) copy->tier = Tier::host;
    Room room = host_room();
    Bookings ssd;
    for (const Copy& copy : copies_) {
      if (copy.tier == Tier::ssd) book(copy, kUnlimitedPatience, ssd);
    }
    for (Copy* copy : order) {
      if (least(room, *copy) >= 0 || !book(*copy, patience, ssd)) continue;
      copy->tier = Tier::ssd;
      take(room, *copy, -static_cast<int64_t>(copy->bytes));
    }
    const bool fits = room.least(0, positions_) >= 0;
    if (!fits) {
      for (Copy* copy : order) copy->tier = Tier::host;
    }
    return fits;
  }

  Room host_room() const {
    std::vector<int64_t> room;
    room.reserve(host_.size());
    for (const uint64_t bytes : host_) room.push_back(static_cast<int64_t>(machine_.host_bytes - bytes));
    return Room(std::move(room));
  }
  int64_t least(const Room& room, const Copy& copy) const {
    if (copy.begin < copy.end) return room.least(copy.begin, copy.end);
    return std::min(room.least(copy.begin, positions_), room.least(0, copy.end));
  }
  void take(Room& room, const Copy& copy, int64_t bytes) const {
    room.take(copy.begin, copy.begin < copy.end ? copy.end : positions_, bytes);
    if (copy.begin >= copy.end) room.take(0, copy.end, bytes);
  }

  // When the SSD is reckoned to write, copy after copy, and to read, each as late as possible.
  struct Bookings {
    int64_t written_ns = 0;
    BusyTimes reads;
  };

  // False, and nothing is booked: the write would begin too late, or a read end too early, or begin before the write
  // ends or while the copy is read already.
  bool book(const Copy& copy, int64_t patience, Bookings& ssd) const {
    const auto start = static_cast<int64_t>(start_ns_[copy.begin]);
    const auto out = static_cast<int64_t>(copy_ns(copy.bytes, machine_.ssd_write_bytes_per_s, machine_.ssd_latency_ns));
    const auto in = static_cast<int64_t>(copy_ns(copy.bytes, machine_.ssd_read_bytes_per_s, machine_.ssd_latency_ns));
    const auto round = static_cast<int64_t>(start_ns_.back());
    const int64_t begin = std::max(start, ssd.written_ns);
    if (begin - start > patience) return false;
    std::vector<int64_t> reads;
    for (const uint32_t stay : copy.reloads) {
      const auto needed = static_cast<int64_t>(start_ns_[schedule_.stays[stay].begin]);
      reads.push_back(ssd.reads.fit_before(needed, in));
      const int64_t lead = needed - in - reads.back();
      const int64_t away = needed - start + (needed <= start ? round : 0);
      if (patience == kUnlimitedPatience) continue;
      const auto overlaps = [&](int64_t read) { return std::abs(read - reads.back()) < in; };
      if (std::any_of(reads.begin(), reads.end() - 1, overlaps)) return false;
      if (lead / kReadPatience > patience || begin - start + out + lead + in > away) return false;
    }
    ssd.written_ns = begin + out;
    for (const int64_t read : reads) ssd.reads.book(read, in);
    return true;
  }

  // Moves copies to the SSD, those that are kept longest first, until the host has room. False: there is no SSD.
  bool relieve_host() {
    if (machine_.host_bytes == 0) return true;
    while (true) {
      const auto fullest = std::max_element(host_.begin(), host_.end());
      if (*fullest <= machine_.host_bytes) return true;
      if (!machine_.has_ssd()) return false;
      const auto position = static_cast<uint32_t>(fullest - host_.begin());
      Copy* longest = nullptr;
      for (Copy& copy : copies_) {
        if (copy.tier != Tier::host || !copy.covers(position)) continue;
        if (longest == nullptr || copy.length_ns > longest->length_ns) longest = &copy;
      }
      longest->tier = Tier::ssd;
      take_from_host(*longest);
    }
  }

  void settle(const Copy& copy, TierUse& use) {
    if (copy.offload != kNone) schedule_.stays[copy.offload].to = copy.tier;
    for (const uint32_t stay : copy.reloads) schedule_.stays[stay].from = copy.tier;
    if (copy.tier != Tier::ssd) return;
    if (copy.offload != kNone) use.ssd_written_bytes += copy.bytes;
    use.ssd_read_bytes += copy.bytes * copy.reloads.size();
  }

  const TaskGraph& graph_;
  const Machine& machine_;
  Schedule& schedule_;
  uint32_t positions_;
  std::vector<uint64_t> host_;  // position -> bytes of copies
  std::vector<uint64_t> start_ns_;
  std::vector<Copy> copies_;
};

}  // namespace

TierUse assign_tiers(const TaskGraph& graph, const Machine& machine, Schedule& schedule) {
  return Assignment(graph, machine, schedule).run();
}

}  // namespace reprise::analyzer
