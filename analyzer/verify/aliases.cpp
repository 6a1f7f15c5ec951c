// Tensors whose ranges stay mapped while their bytes are away (audited safety): two iterations are played in the
// program's order, as the replay issues them where not every op is audited, and whoever may touch more than its
// operands must find every such tensor in its place.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "analyzer/plan/vertex_kinds.h"
#include "analyzer/verify/machine_walk.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

// When an aliased tensor may have left its chunks, and when it is back: per call of the program, what changes behind it
// and before it. The lives of one that is recomputed are one tensor, the first, and a drop is a move.
class Absences {
 public:
  explicit Absences(const plan::Plan& plan)
      : plan_(plan),
        last_life_(plan.tensors.size()),
        leave_behind_(plan.calls.size()),
        back_at_(plan.calls.size()),
        away_(plan.tensors.size(), 0) {
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) last_life_[root(tensor)] = tensor;
    std::vector<uint32_t> last_use(plan.tensors.size(), kNone);
    std::vector<uint8_t> moved(plan.tensors.size(), 0);
    for (int round = 0; round < 2; ++round) {
      for (const uint32_t vertex : plan.order) play(plan.vertices[vertex], last_use, moved);
    }
    for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      const plan::Tensor& what = plan.tensors[tensor];
      if (what.aliased && what.allocate_call != kNone && what.recompute_of == kNone) add_life(tensor, last_use[tensor]);
    }
  }

  Status run() {
    for (int round = 0; round < 2; ++round) {
      for (uint32_t call = 0; call < plan_.calls.size(); ++call) {
        for (const uint32_t tensor : back_at_[call]) change(tensor, 0);
        const plan::Call& entry = plan_.calls[call];
        if (count_ > 0 && entry.kind == plan::CallKind::op && may_touch_anything(entry)) return found(call);
        for (const uint32_t tensor : leave_behind_[call]) change(tensor, 1);
      }
    }
    return {};
  }

 private:
  uint32_t root(uint32_t tensor) const { return plan::root_of(plan_.tensors, tensor); }

  // A move between two uses of a tensor: from the first one to the second it may be away.
  void play(const plan::Vertex& vertex, std::vector<uint32_t>& last_use, std::vector<uint8_t>& moved) {
    if (plan::copies(vertex.kind)) moved[root(vertex.tensor)] = 1;
    if (plan::frees(vertex.kind) && last_life_[root(vertex.tensor)] != vertex.tensor) moved[root(vertex.tensor)] = 1;
    if (!plan::runs_op(vertex.kind)) return;
    for (const plan::OpAccess& access : plan_.calls[vertex.call].accesses) {
      const uint32_t tensor = root(access.tensor);
      if (plan_.tensors[tensor].aliased && moved[tensor] != 0) {
        if (last_use[tensor] != kNone) leave_behind_[last_use[tensor]].push_back(tensor);
        back_at_[vertex.call].push_back(tensor);
      }
      moved[tensor] = 0;
      last_use[tensor] = vertex.call;
    }
  }

  // One that the program allocates has its chunks from its first use to its last.
  void add_life(uint32_t tensor, uint32_t last_use) {
    const uint32_t allocated = plan_.tensors[tensor].allocate_call;
    const uint32_t freed = plan_.tensors[last_life_[tensor]].free_call;
    leave_behind_[allocated].push_back(tensor);
    back_at_[freed].push_back(tensor);
    if (last_use != kNone) leave_behind_[last_use].push_back(tensor);
    for (uint32_t call = allocated; call < freed; ++call) {
      for (const plan::OpAccess& access : plan_.calls[call].accesses) {
        if (root(access.tensor) != tensor) continue;
        back_at_[call].push_back(tensor);
        return;
      }
    }
  }

  static bool may_touch_anything(const plan::Call& call) {
    const bool copies = call.op == trace::OpKind::memset || call.op == trace::OpKind::copy_host_to_device ||
                        call.op == trace::OpKind::copy_device_to_host || call.op == trace::OpKind::copy_host_to_host ||
                        call.op == trace::OpKind::copy_device_to_device || call.op == trace::OpKind::host_function;
    const bool proven = call.op == trace::OpKind::launch && call.audited != 0;
    return (call.flags & trace::kOpOpaque) != 0 || !(copies || proven);
  }

  void change(uint32_t tensor, uint8_t away) {
    if (away_[tensor] == away) return;
    away_[tensor] = away;
    count_ += away != 0 ? 1 : -1;
  }

  Status found(uint32_t call) const {
    uint32_t tensor = 0;
    while (away_[tensor] == 0) ++tensor;
    return refusal(
        fmt::format("call {} ({}) may touch memory unseen, and tensor {} may be away then, though its addresses "
                    "lead to what others have in its chunks",
                    call, trace::shown_name(plan_.calls[call].name), tensor));
  }

  const plan::Plan& plan_;
  std::vector<uint32_t> last_life_;                  // by tensor that is a first one
  std::vector<std::vector<uint32_t>> leave_behind_;  // by call
  std::vector<std::vector<uint32_t>> back_at_;
  std::vector<uint8_t> away_;
  int count_ = 0;
};

}  // namespace

Status check_aliases(const plan::Plan& plan) {
  bool any = false;
  for (const plan::Tensor& tensor : plan.tensors) any = any || tensor.aliased;
  if (!any) return {};
  for (const plan::Vertex& vertex : plan.vertices) {
    for (const plan::Acquire& acquire : vertex.acquires) {
      const plan::Tensor& tensor = plan.tensors[acquire.tensor];
      const uint32_t first = plan::root_of(plan.tensors, acquire.tensor);
      if (!tensor.aliased || acquire.placement == plan.tensors[first].home) continue;
      return refusal(fmt::format("tensor {} stays mapped to its home and comes elsewhere", acquire.tensor));
    }
  }
  return Absences(plan).run();
}

}  // namespace reprise::analyzer
