// Ops that the plan recomputes: do they make the same bytes? Every content gets a number; a recompute must read the
// numbers that the first launch read, and the program must read what it would have read without the plan. And at every
// call of the program, what it has and what is in no memory can be recomputed from what is.
#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/verify/machine_walk.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

class Values {
 public:
  explicit Values(const plan::Plan& plan)
      : plan_(plan),
        content_(plan.tensors.size(), 0),
        wanted_(plan.tensors.size(), 0),
        life_(plan.tensors.size(), kNone),
        held_(plan.tensors.size(), 0),
        seen_(plan.calls.size()),
        recomputes_(plan.calls.size()),
        needed_by_(plan.tensors.size()) {
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      if (plan.tensors[tensor].allocate_call != kNone) continue;
      content_[tensor] = wanted_[tensor] = ++last_;
      life_[tensor] = tensor;
    }
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      if (plan.calls[call].recompute_of != kNone) recomputes_[plan.calls[call].recompute_of].push_back(call);
    }
  }

  Status run() {
    for (int round = 0; round < 2; ++round) {
      for (uint32_t tensor = 0; tensor < wanted_.size(); ++tensor) {
        if (plan_.tensors[tensor].allocate_call != kNone) wanted_[tensor] = 0;  // they are new in each iteration
      }
      for (uint32_t call = 0; call < plan_.calls.size(); ++call) {
        const plan::Call& entry = plan_.calls[call];
        if (Status status = check_dropped(call); !status.ok()) return status;
        if (entry.kind != plan::CallKind::op) {
          memory_call(entry);
          continue;
        }
        Status status = entry.recompute_of == kNone ? launch(call) : recompute(call);
        if (!status.ok()) return status;
      }
    }
    return {};
  }

 private:
  uint32_t root(uint32_t tensor) const { return plan::root_of(plan_.tensors, tensor); }

  void memory_call(const plan::Call& call) {
    const uint32_t first = root(call.tensor);
    switch (call.kind) {
      case plan::CallKind::allocate:
        content_[call.tensor] = 0;
        life_[first] = call.tensor;
        if (!call.inserted) held_[first] = 1;
        break;
      case plan::CallKind::free:
        if (life_[first] == call.tensor) life_[first] = kNone;
        if (!call.inserted) held_[first] = 0;
        break;
      case plan::CallKind::late_free:
        held_[first] = 0;
        break;
      case plan::CallKind::free_handover:
      case plan::CallKind::allocate_handover:
        change(call.tensor);
        break;
      case plan::CallKind::op:
        break;
    }
    disturb(first);
  }

  // What the program has and could find otherwise, and what rests on it, must be looked at before the next call.
  void disturb(uint32_t first) {
    doubtful_.insert(first);
    doubtful_.insert(needed_by_[first].begin(), needed_by_[first].end());
  }

  // The program has a tensor from its own allocation to its own free; all parts of a split one go with the first.
  bool has(uint32_t first) const {
    const uint32_t part = plan_.tensors[first].part_of;
    return held_[part == kNone ? first : root(part)] != 0;
  }
  bool is_there(uint32_t first, uint64_t content) const {
    return life_[first] != kNone && content_[life_[first]] == content;
  }

  // At any of its calls the program may do something else than the plan says, with those inserted before it made or
  // not. What has been dropped by then must be made again at once, from what is there.
  Status check_dropped(uint32_t call) {
    const std::set<uint32_t> doubtful = std::move(doubtful_);
    doubtful_.clear();
    for (const uint32_t first : doubtful) {
      if (plan_.tensors[first].allocate_call == kNone || !has(first) || wanted_[first] == 0) continue;
      if (is_there(first, wanted_[first])) continue;
      const uint32_t missing = missing_for(first, wanted_[first], call, first);
      if (missing == kNone) continue;
      return refusal(fmt::format("tensor {} is dropped and cannot be made again before call {} ({}): {}", first, call,
                                 trace::shown_name(plan_.calls[call].name),
                                 missing == first ? std::string("nothing recomputes it")
                                                  : fmt::format("tensor {} does not hold what that takes", missing)));
    }
    return {};
  }

  // The tensor whose content a recompute after `call` lacks, directly or not, to make `content` in `first`; kNone: all
  // is there. Each op reads what earlier ones made, so this ends.
  uint32_t missing_for(uint32_t first, uint64_t content, uint32_t call, uint32_t dropped) {
    needed_by_[first].insert(dropped);
    if (is_there(first, content)) return kNone;
    const uint32_t maker = content < made_.size() ? made_[content] : kNone;
    if (maker == kNone || recomputes_[maker].empty() || recomputes_[maker].back() < call) return first;
    const std::vector<plan::OpAccess>& accesses = plan_.calls[maker].accesses;
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (!reads(accesses[i])) continue;
      const uint32_t missing = missing_for(root(accesses[i].tensor), seen_[maker][i], call, dropped);
      if (missing != kNone) return missing;
    }
    return kNone;
  }

  Status launch(uint32_t call) {
    seen_[call].clear();
    for (const plan::OpAccess& access : plan_.calls[call].accesses) {
      seen_[call].push_back(content_[access.tensor]);
      if (!reads(access) || content_[access.tensor] == wanted_[root(access.tensor)]) continue;
      return refusal(fmt::format("call {} ({}) reads tensor {}, which does not hold what the program left there", call,
                                 trace::shown_name(plan_.calls[call].name), access.tensor));
    }
    const uint64_t before = last_;
    for (const plan::OpAccess& access : plan_.calls[call].accesses) {
      if (!changes(access) || content_[access.tensor] > before) continue;  // it may have a tensor by two names
      change(access.tensor);
      made_.resize(last_ + 1, kNone);
      made_[last_] = call;
    }
    if (!uses_everything(plan_.calls[call])) return {};
    for (uint32_t tensor = 0; tensor < plan_.tensors.size(); ++tensor) {
      if (alive_at(plan_.tensors[tensor], call)) change(tensor);
    }
    return {};
  }

  bool made_by(uint32_t call, uint64_t number) const { return number < made_.size() && made_[number] == call; }
  void change(uint32_t tensor) {
    content_[tensor] = wanted_[root(tensor)] = ++last_;
    disturb(root(tensor));
  }

  Status recompute(uint32_t call) {
    const plan::Call& repeat = plan_.calls[call];
    const plan::Call& first = plan_.calls[repeat.recompute_of];
    const std::string what = fmt::format("call {} ({}), which recomputes call {},", call,
                                         trace::shown_name(repeat.name), repeat.recompute_of);
    if (!first.pure || first.recompute_of != kNone || first.kind != plan::CallKind::op) {
      return refusal(what + " may not: that one is not known to depend on its inputs alone");
    }
    if (repeat.recompute_of >= call || repeat.signature != first.signature || repeat.op != first.op ||
        repeat.flags != first.flags || repeat.accesses.size() != first.accesses.size()) {
      return refusal(what + " is not the same call");
    }
    for (size_t i = 0; i < repeat.accesses.size(); ++i) {
      const plan::OpAccess& now = repeat.accesses[i];
      const plan::OpAccess& then = first.accesses[i];
      if (root(now.tensor) != root(then.tensor) || now.mode != then.mode || now.offset != then.offset ||
          now.parameter_offset != then.parameter_offset || now.size != then.size || (reads(now) && changes(now))) {
        return refusal(fmt::format("{} works on other memory (tensor {})", what, now.tensor));
      }
      if (reads(now) && content_[now.tensor] != seen_[repeat.recompute_of][i]) {
        return refusal(fmt::format("{} finds other bytes in tensor {}", what, now.tensor));
      }
    }
    for (size_t i = 0; i < repeat.accesses.size(); ++i) {
      if (Status status = write_recomputed(repeat, what, i); !status.ok()) return status;
    }
    return {};
  }

  // The first launch wrote into new memory, and so does the recompute, or, of a small tensor, into what is there since;
  // the content is the same if no other op wrote there.
  Status write_recomputed(const plan::Call& repeat, const std::string& what, size_t i) {
    const plan::OpAccess& now = repeat.accesses[i];
    if (!changes(now)) return {};
    const uint64_t wanted = wanted_[root(now.tensor)];
    const uint64_t held = content_[now.tensor];
    const bool fresh = (held == 0 || held == wanted) && seen_[repeat.recompute_of][i] == 0;
    const bool same = made_by(repeat.recompute_of, wanted);
    if (!fresh || !same) return refusal(fmt::format("{} overwrites tensor {}", what, now.tensor));
    content_[now.tensor] = wanted;
    return {};
  }

  const plan::Plan& plan_;
  uint64_t last_ = 0;
  std::vector<uint64_t> content_;                  // tensor -> number of what it holds; 0: nothing yet
  std::vector<uint64_t> wanted_;                   // root tensor -> what the program would find there
  std::vector<uint32_t> life_;                     // root tensor -> the life that has memory; kNone: none
  std::vector<uint8_t> held_;                      // root tensor -> the program has it
  std::vector<std::vector<uint64_t>> seen_;        // call -> what each access found
  std::vector<std::vector<uint32_t>> recomputes_;  // call -> those that recompute it
  std::vector<std::set<uint32_t>> needed_by_;      // root tensor -> dropped tensors made from it
  std::set<uint32_t> doubtful_;                    // root tensors to look at before the program's next call
  std::vector<uint32_t> made_;                     // by number: the call of the op that made it
};

}  // namespace

Status check_recompute(const plan::Plan& plan) {
  bool any = false;
  for (const plan::Call& call : plan.calls) any = any || call.recompute_of != kNone;
  for (const plan::Tensor& tensor : plan.tensors) any = any || tensor.recompute_of != kNone;
  return any ? Values(plan).run() : Status{};
}

}  // namespace reprise::analyzer
