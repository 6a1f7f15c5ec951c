// When a call of the program is a call of the plan, whatever stands for the plan's tensors. Callers: the matcher, which
// knows their addresses, and the rehearsal, which finds them out.
#pragma once
#include <cstring>

#include "preload/calls/command.h"
#include "preload/trace/signature.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

inline bool is_free(const plan::Call& call) noexcept {
  return call.kind == plan::CallKind::free || call.kind == plan::CallKind::free_handover ||
         call.kind == plan::CallKind::late_free;
}

// What a call is, whatever its sizes.
inline uint64_t structure_of(const Command& command) noexcept {
  uint32_t named = command.access_count;
  for (uint32_t i = 0; command.op == trace::OpKind::launch && i < command.access_count; ++i) {
    if (command.accesses[i].parameter_offset == trace::kNoParameter) --named;
  }
  return trace::op_structure(command.op, command.signature, named);
}
// ... of a plan for iterations whose sizes vary.
inline uint64_t structure_of(const plan::Call& call) noexcept {
  if (call.kind == plan::CallKind::op) return call.signature;
  return is_free(call) ? trace::free_structure(call.origin) : trace::allocate_structure(call.origin);
}

inline bool has_any_size(const plan::Call& call) noexcept { return (call.flags & plan::kCallAnySize) != 0; }

// `any_size`: also where the plan is for one size.
inline bool is_same_op(const plan::Call& call, const Command& command, bool any_size) noexcept {
  if (call.kind != plan::CallKind::op || call.op != command.op) return false;
  if (any_size) return true;
  if (!has_any_size(call)) return call.signature == command.signature;
  if (call.signature != structure_of(command)) return false;
  // What is known of a kernel, and has led to the plan, is not known of another one.
  if (call.op != trace::OpKind::launch || (call.flags & plan::kCallAnyKernel) != 0) return true;
  return command.name != nullptr && call.name == command.name;
}

// May a tensor of this size stand for the one that the call allocates or frees?
inline bool has_size(const plan::Plan& plan, const plan::Call& call, uint64_t size) noexcept {
  const uint64_t planned = plan.tensors[call.tensor].size;
  return has_any_size(call) ? size <= planned : size == planned;
}

// Are the words of the launch's parameters 0 that the proof of the call needs to be?
inline bool has_null_words(const plan::Call& call, const Command& command) noexcept {
  for (const uint32_t at : call.null_words) {
    uint64_t word = 1;
    if (uint64_t{at} + sizeof word <= command.parameter_bytes) {
      std::memcpy(&word, command.parameters + at, sizeof word);
    }
    if (word != 0) return false;
  }
  return true;
}

// `stands_for(expected, access)`: does the access go to what stands for this tensor of the plan? `is_pointee(access)`:
// to one of those that the plan knows the call to reach through addresses in memory?
template <typename StandsFor, typename IsPointee>
bool is_same_call(const plan::Call& call, const Command& command, Zone managed, StandsFor stands_for,
                  IsPointee is_pointee, bool any_size = false) noexcept {
  constexpr uint16_t kSame = trace::kOpOpaque | trace::kOpDeclared;
  if (!is_same_op(call, command, any_size) || ((call.flags ^ command.flags) & kSame) != 0) return false;
  // What an audit has shown, or code proves, holds for this very kernel. A shape is in the signature and the tensors.
  const uint64_t kernel = (call.flags & plan::kCallProven) != 0 ? command.code : command.kernel;
  if (!any_size && call.audited != 0 && (kernel != call.audited || !has_null_words(call, command))) return false;
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
    // What is known of a launch is known of its words.
    if (call.audited != 0 && expected.parameter_offset != access.parameter_offset) return false;
    const bool same_part = any_size || plan::moves(expected) || expected.offset == access.offset;
    if (!same_part || !stands_for(expected, access)) return false;
  }
  while (launch && next < call.accesses.size() && call.accesses[next].parameter_offset == trace::kNoParameter) ++next;
  return next == call.accesses.size();
}

inline bool is_allocation(const plan::Call& expected, const AllocateCall& call) noexcept {
  return (expected.kind == plan::CallKind::allocate || expected.kind == plan::CallKind::allocate_handover) &&
         expected.origin == call.origin;
}
inline bool is_same_allocation(const plan::Plan& plan, const plan::Call& expected, const AllocateCall& call) noexcept {
  return is_allocation(expected, call) && has_size(plan, expected, call.size);
}

}  // namespace reprise::replay
