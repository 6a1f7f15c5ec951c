// When a call of the program is a call of the plan, whatever stands for the plan's tensors. Callers: the matcher, which
// knows their addresses, and the rehearsal, which finds them out.
#pragma once
#include "preload/calls/command.h"
#include "preload/trace/format.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

// `stands_for(tensor, access)`: does the access go to what stands for this tensor of the plan? `is_pointee(access)`: to
// one of those that the plan knows the call to reach through addresses in memory?
template <typename StandsFor, typename IsPointee>
bool is_same_call(const plan::Call& call, const Command& command, Zone managed, StandsFor stands_for,
                  IsPointee is_pointee) noexcept {
  if (call.kind != plan::CallKind::op || call.op != command.op || call.signature != command.signature ||
      ((call.flags ^ command.flags) & trace::kOpOpaque) != 0) {
    return false;
  }
  // What an audit has shown holds for this very kernel. Its shape is in the signature and in the tensors.
  if (call.audited != 0 && command.kernel != call.audited) return false;
  const bool launch = command.op == trace::OpKind::launch || command.op == trace::OpKind::graph_launch;
  // The plan names managed tensors only: pointers to anything else (pinned host memory, globals) are not moved.
  size_t next = 0;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = command.accesses[i];
    if (!managed.contains(access.address - access.offset)) continue;
    if (launch && access.parameter_offset == trace::kNoParameter) {
      if (!is_pointee(access)) return false;
      continue;
    }
    if (next == call.accesses.size()) return false;
    const plan::OpAccess& expected = call.accesses[next++];
    if ((!plan::moves(expected) && expected.offset != access.offset) || !stands_for(expected.tensor, access))
      return false;
  }
  while (launch && next < call.accesses.size() && call.accesses[next].parameter_offset == trace::kNoParameter) ++next;
  return next == call.accesses.size();
}

inline bool is_same_allocation(const plan::Plan& plan, const plan::Call& expected, const AllocateCall& call) noexcept {
  return (expected.kind == plan::CallKind::allocate || expected.kind == plan::CallKind::allocate_handover) &&
         expected.origin == call.origin && plan.tensors[expected.tensor].size == call.size;
}

inline bool is_free(const plan::Call& call) noexcept {
  return call.kind == plan::CallKind::free || call.kind == plan::CallKind::free_handover ||
         call.kind == plan::CallKind::late_free;
}

}  // namespace reprise::replay
