#include "replay/follow/difference.h"

#include <cstring>
#include <vector>

#include "preload/base/readable.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {

using plan::CallKind;

std::string instead(uint64_t got, uint64_t expected) {
  std::string these = readable_bytes(got);
  std::string those = readable_bytes(expected);
  if (these == those) {  // rounded
    these = std::to_string(got) + " B";
    those = std::to_string(expected) + " B";
  }
  return these + " instead of " + those;
}

// Where a tensor of the plan ends counts where the access has no size.
uint64_t bytes_of(const plan::Plan& plan, const plan::OpAccess& access) {
  return access.size != 0 ? access.size : plan.tensors[access.tensor].size - access.offset;
}

bool is_launch(const Command& command) {
  return command.op == trace::OpKind::launch || command.op == trace::OpKind::graph_launch;
}

// Operands that parameters name, of memory that is managed: others are not compared in order.
std::vector<const Access*> operands_of(const Matcher& matcher, const Command& command) {
  std::vector<const Access*> operands;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = command.accesses[i];
    const bool named = !is_launch(command) || access.parameter_offset != trace::kNoParameter;
    if (named && matcher.manages(access.address - access.offset)) operands.push_back(&access);
  }
  return operands;
}

std::vector<const plan::OpAccess*> operands_of(const plan::Call& call, const Command& command) {
  std::vector<const plan::OpAccess*> operands;
  for (const plan::OpAccess& access : call.accesses) {
    if (!is_launch(command) || access.parameter_offset != trace::kNoParameter) operands.push_back(&access);
  }
  return operands;
}

std::string of_operands(const Matcher& matcher, const Command& command) {
  const std::vector<const Access*> got = operands_of(matcher, command);
  const std::vector<const plan::OpAccess*> expected = operands_of(matcher.expected_call(), command);
  if (got.size() != expected.size()) {
    return std::to_string(got.size()) + " operands instead of " + std::to_string(expected.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string which = got.size() == 1 ? "" : "operand " + std::to_string(i + 1) + ": ";
    if (!is_launch(command) && !has_any_size(matcher.expected_call()) &&
        got[i]->size != bytes_of(matcher.plan(), *expected[i])) {
      return which + instead(got[i]->size, bytes_of(matcher.plan(), *expected[i]));
    }
    if (matcher.address_of(expected[i]->tensor) != got[i]->address - got[i]->offset) return which + "another tensor";
    if (!plan::moves(*expected[i]) && expected[i]->offset != got[i]->offset) {
      return which + "at byte " + std::to_string(got[i]->offset) + " of its tensor instead of " +
             std::to_string(expected[i]->offset);
    }
  }
  return {};
}

void add(std::string& clause, const std::string& more) {
  if (more.empty()) return;
  clause += clause.empty() ? more : ", " + more;
}

bool frees(CallKind kind) {
  return kind == CallKind::free || kind == CallKind::free_handover || kind == CallKind::late_free;
}

bool allocates(CallKind kind) { return kind == CallKind::allocate || kind == CallKind::allocate_handover; }

}  // namespace

std::string difference(const Matcher& matcher, const Command& command) noexcept {
  const plan::Call& call = matcher.expected_call();
  if (call.kind != CallKind::op || command.name == nullptr || call.name != command.name) return {};
  std::string clause = of_operands(matcher, command);
  const bool other_shape = call.signature != command.signature && clause.empty();
  if (other_shape) add(clause, is_launch(command) ? "another grid, block or shared memory" : "another size or order");
  if (call.audited != 0 && (((call.flags & plan::kCallProven) != 0 ? command.code : command.kernel)) != call.audited)
    add(clause, "another kernel than the one that is known");
  return clause.empty() ? "what it reaches by addresses in memory" : clause;
}

std::string difference(const Matcher& matcher, const AllocateCall& call) noexcept {
  const plan::Call& expected = matcher.expected_call();
  if (!allocates(expected.kind)) return {};
  const uint64_t size = matcher.plan().tensors[expected.tensor].size;
  return size != call.size ? instead(call.size, size) : "by another call of the driver";
}

std::string difference(const Matcher& matcher, const FreeCall& call) noexcept {
  const plan::Call& expected = matcher.expected_call();
  if (!frees(expected.kind)) return {};
  const uint64_t size = matcher.plan().tensors[expected.tensor].size;
  return size != call.size ? instead(call.size, size) : "of another tensor";
}

}  // namespace reprise::replay
