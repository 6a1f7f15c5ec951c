// LB3, the window bound. For a window of ops a..b let I be the time from the start of the first of them that computes
// to the end of the last one.
//
// Out: tensors that ops of the window write and that an op behind b + 63 reads hold their bytes at the end of I, for
// that op has not started: the dispatcher starts none that far ahead, and the last op of the window computes until
// then. What of them does not fit on the device then has been copied out, and within I, for it was written within I.
// In: tensors that ops of the window read and that were settled by ops up to a - 64, all of which have run when I
// begins, have their bytes then. What of them does not fit on the device has been copied in, and within I. Ops up to a
// - 64 have run before I, those from b + 64 on run behind it. So an iteration takes I and all of those, in any order
// that the dispatcher chooses. Only for plans that recompute nothing, and on one device.
#include <algorithm>
#include <vector>

#include "analyzer/bounds/bounds.h"
#include "analyzer/bounds/uses.h"

namespace reprise::analyzer {
namespace {

constexpr uint64_t kEffort = 2'000'000;  // tensors looked at, over all windows' beginnings
constexpr uint32_t kMostBegins = 256;

class Windows {
 public:
  Windows(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine)
      : graph_(graph), capacity_(capacity_bytes), machine_(machine), uses_(uses_of(graph)) {
    count_ = static_cast<uint32_t>(uses_.call_of_op.size());
    before_.push_back(0);
    for (const uint64_t time : uses_.compute_ns) before_.push_back(before_.back() + time);
  }

  uint64_t bound() {
    if (count_ == 0) return 0;
    const uint64_t begins = std::clamp<uint64_t>(kEffort / (graph_.tensors.size() + 1), 1, kMostBegins);
    const uint32_t step = std::max<uint32_t>(1, static_cast<uint32_t>(divide_up(count_, begins)));
    uint64_t best = 0;
    for (uint32_t a = 0; a < count_; a += step) best = std::max(best, from(a));
    return best;
  }

 private:
  // The best window that begins at `a`.
  uint64_t from(uint32_t a) {
    written_.assign(size_t{count_} + 1, 0);
    read_.assign(size_t{count_} + 1, 0);
    for (uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      if (uses_.of_tensor[t].empty()) continue;
      add_written(t, a);
      add_read(t, a);
    }
    uint64_t best = 0;
    int64_t out = 0;
    int64_t in = 0;
    const uint64_t outside_before = a >= kDispatchWindow ? before_[a - kDispatchWindow + 1] : 0;
    for (uint32_t b = a; b < count_; ++b) {
      out += written_[b];
      in += read_[b];
      const uint64_t inside = std::max(
          {before_[b + 1] - before_[a], time(out, machine_.d2h_bytes_per_s), time(in, machine_.h2d_bytes_per_s)});
      const uint64_t outside_behind = b + kDispatchWindow < count_ ? before_[count_] - before_[b + kDispatchWindow] : 0;
      best = std::max(best, inside + outside_before + outside_behind);
    }
    return best;
  }

  uint64_t time(int64_t bytes, double rate) const {
    const int64_t excess = bytes - static_cast<int64_t>(capacity_);
    return excess > 0 ? copy_ns(static_cast<uint64_t>(excess), rate, 0) : 0;
  }

  // Ends of windows for which the tensor counts: from its first write on, as long as a read is far enough behind. What
  // is overwritten in between does not count.
  void add_written(uint32_t tensor, uint32_t a) {
    const std::vector<Use>& uses = uses_.of_tensor[tensor];
    const auto bytes = static_cast<int64_t>(bound_bytes(graph_.tensors[tensor]));
    for (size_t i = 0; i < uses.size();) {
      size_t end = i + 1;  // of this version: the next fresh use
      while (end < uses.size() && !uses[end].fresh) ++end;
      uint64_t last_read = end - 1 > i || !uses[i].fresh ? uint64_t{uses[end - 1].op} : 0;
      if (end == uses.size() && is_persistent(graph_.tensors[tensor]) && !uses.front().fresh)
        last_read = next_round(uses);
      uint32_t first_write = kNone;
      for (size_t k = i; k < end && first_write == kNone; ++k) {
        if (uses[k].writes && uses[k].op >= a) first_write = uses[k].op;
      }
      if (uses_.by_copies[tensor] == 0 && first_write != kNone &&
          last_read >= uint64_t{first_write} + kDispatchWindow) {
        written_[first_write] += bytes;
        const uint64_t behind = last_read - kDispatchWindow + 1;
        written_[std::min<uint64_t>(behind, count_)] -= bytes;
      }
      i = end;
    }
  }

  // The last read of the next iteration before something overwrites the tensor.
  uint64_t next_round(const std::vector<Use>& uses) const {
    uint64_t last = 0;
    for (const Use& use : uses) {
      if (use.fresh) break;
      last = uint64_t{count_} + use.op;
    }
    return last;
  }

  // The tensor counts from its first read in the window on, if what it holds was there long before.
  void add_read(uint32_t tensor, uint32_t a) {
    if (uses_.by_copies[tensor] != 0) return;
    const std::vector<Use>& uses = uses_.of_tensor[tensor];
    const auto read = std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return use.op >= a; });
    if (read == uses.end() || read->fresh) return;
    // The use that settled what it holds: the latest fresh one before; of a persistent tensor perhaps an iteration ago.
    int64_t settled = 0;
    auto fresh = std::find_if(std::make_reverse_iterator(read), uses.rend(), [](const Use& use) { return use.fresh; });
    if (fresh != uses.rend()) {
      settled = fresh->op;
    } else if (is_persistent(graph_.tensors[tensor])) {
      fresh = std::find_if(uses.rbegin(), uses.rend(), [](const Use& use) { return use.fresh; });
      if (fresh != uses.rend()) settled = int64_t{fresh->op} - int64_t{count_};
      if (fresh == uses.rend()) settled = -int64_t{kDispatchWindow};
    }
    if (settled + int64_t{kDispatchWindow} <= int64_t{a}) {
      read_[read->op] += static_cast<int64_t>(bound_bytes(graph_.tensors[tensor]));
    }
  }

  const TaskGraph& graph_;
  uint64_t capacity_;
  const Machine& machine_;
  Uses uses_;
  uint32_t count_ = 0;
  std::vector<uint64_t> before_;  // op -> compute time before it
  std::vector<int64_t> written_;  // by b: change of the bytes that must be somewhere at the window's end
  std::vector<int64_t> read_;     // by b: bytes that come to the window's needs
};

}  // namespace

uint64_t window_bound(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine) {
  return Windows(graph, capacity_bytes, machine).bound();
}

}  // namespace reprise::analyzer
