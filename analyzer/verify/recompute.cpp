// Ops that the plan recomputes: do they make the same bytes? Every content gets a number; a recompute must read the
// numbers that the first launch read, and the program must read what it would have read without the plan.
#include <fmt/format.h>

#include <vector>

#include "analyzer/verify/machine_walk.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

class Values {
 public:
  explicit Values(const plan::Plan& plan)
      : plan_(plan), content_(plan.tensors.size(), 0), wanted_(plan.tensors.size(), 0), seen_(plan.calls.size()) {
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      if (plan.tensors[tensor].allocate_call == kNone) content_[tensor] = wanted_[tensor] = ++last_;
    }
  }

  Status run() {
    for (int round = 0; round < 2; ++round) {
      for (uint32_t call = 0; call < plan_.calls.size(); ++call) {
        const plan::Call& entry = plan_.calls[call];
        if (entry.kind == plan::CallKind::allocate) content_[entry.tensor] = 0;
        if (entry.kind == plan::CallKind::allocate && !entry.inserted) wanted_[root(entry.tensor)] = 0;
        const bool handover =
            entry.kind == plan::CallKind::free_handover || entry.kind == plan::CallKind::allocate_handover;
        if (handover) change(entry.tensor);
        if (entry.kind != plan::CallKind::op) continue;
        Status status = entry.recompute_of == kNone ? launch(call) : recompute(call);
        if (!status.ok()) return status;
      }
    }
    return {};
  }

 private:
  static Status wrong(const std::string& message) { return {StatusCode::internal, "the plan is wrong: " + message}; }

  uint32_t root(uint32_t tensor) const { return plan::root_of(plan_.tensors, tensor); }

  Status launch(uint32_t call) {
    seen_[call].clear();
    for (const plan::OpAccess& access : plan_.calls[call].accesses) {
      seen_[call].push_back(content_[access.tensor]);
      if (!reads(access) || content_[access.tensor] == wanted_[root(access.tensor)]) continue;
      return wrong(fmt::format("call {} ({}) reads tensor {}, which does not hold what the program left there", call,
                               plan_.calls[call].name, access.tensor));
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
  void change(uint32_t tensor) { content_[tensor] = wanted_[root(tensor)] = ++last_; }

  Status recompute(uint32_t call) {
    const plan::Call& repeat = plan_.calls[call];
    const plan::Call& first = plan_.calls[repeat.recompute_of];
    const std::string what =
        fmt::format("call {} ({}), which recomputes call {},", call, repeat.name, repeat.recompute_of);
    if (!first.pure || first.recompute_of != kNone || first.kind != plan::CallKind::op) {
      return wrong(what + " may not: that one is not known to depend on its inputs alone");
    }
    if (repeat.recompute_of >= call || repeat.signature != first.signature ||
        repeat.accesses.size() != first.accesses.size()) {
      return wrong(what + " is not the same call");
    }
    for (size_t i = 0; i < repeat.accesses.size(); ++i) {
      const plan::OpAccess& now = repeat.accesses[i];
      const plan::OpAccess& then = first.accesses[i];
      if (root(now.tensor) != root(then.tensor) || now.mode != then.mode || now.offset != then.offset ||
          now.size != then.size || (reads(now) && changes(now))) {
        return wrong(fmt::format("{} works on other memory (tensor {})", what, now.tensor));
      }
      if (reads(now) && content_[now.tensor] != seen_[repeat.recompute_of][i]) {
        return wrong(fmt::format("{} finds other bytes in tensor {}", what, now.tensor));
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
    if (!fresh || !same) return wrong(fmt::format("{} overwrites tensor {}", what, now.tensor));
    content_[now.tensor] = wanted;
    return {};
  }

  const plan::Plan& plan_;
  uint64_t last_ = 0;
  std::vector<uint64_t> content_;            // tensor -> number of what it holds; 0: nothing yet
  std::vector<uint64_t> wanted_;             // root tensor -> what the program would find there
  std::vector<std::vector<uint64_t>> seen_;  // call -> what each access found
  std::vector<uint32_t> made_;               // by number: the call of the op that made it
};

}  // namespace

Status check_recompute(const plan::Plan& plan) {
  bool any = false;
  for (const plan::Call& call : plan.calls) any = any || call.recompute_of != kNone;
  for (const plan::Tensor& tensor : plan.tensors) any = any || tensor.recompute_of != kNone;
  return any ? Values(plan).run() : Status{};
}

}  // namespace reprise::analyzer
