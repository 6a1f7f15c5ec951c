#include "preload/access/arguments.h"

#include <cstring>

#include "preload/access/pointees.h"
#include "preload/calls/declared.h"
#include "preload/tracking/tensor_maps.h"

namespace reprise {
namespace {

constexpr uint32_t kReadWrite = trace::kAccessRead | trace::kAccessWrite;
constexpr uint32_t kExtraRoom = 64;  // globals, hidden memory, pointees
constexpr uint32_t kMaxRoom = 1100;
constexpr uint32_t kTensorMapAlignment = 64;  // of cuda.h's CUtensorMap

// Was this word's memory found by the plain scan already?
bool found_within(const CommandBuilder& builder, uint64_t allocation, uint32_t begin, uint32_t end) {
  for (uint32_t i = 0; i < builder.command.access_count; ++i) {
    const Access& access = builder.accesses[i];
    if (access.allocation == allocation && access.parameter_offset >= begin && access.parameter_offset < end)
      return true;
  }
  return false;
}

void scan_tensor_maps(CommandBuilder& builder, const uint8_t* parameters, uint32_t begin, uint32_t bytes) {
  // Descriptors are aligned within the kernel's parameter space, whose own origin is not: a struct starts with them, or
  // holds them at multiples of their alignment from its start.
  for (uint32_t at = 0; at + kTensorMapBytes <= bytes; at += kTensorMapAlignment) {
    const CUdeviceptr address = find_tensor_map(parameters + begin + at);
    if (address == 0) {
      if (tensor_maps_overflowed()) builder.flag(trace::kOpOpaque);
      continue;
    }
    Allocation allocation;
    if (!find_allocation(address, &allocation)) continue;
    if (found_within(builder, allocation.id, begin + at, begin + at + kTensorMapBytes)) continue;
    builder.touch(allocation, address, 0, kReadWrite, begin + at);
  }
}

// Memory behind texture objects and the like. Rare, so its list is not on every launch's stack.
__attribute__((noinline)) void add_hidden(CommandBuilder& builder) {
  Allocation hidden[kExtraRoom];
  const uint32_t count = hidden_allocations(hidden, kExtraRoom);
  if (count > kExtraRoom) builder.flag(trace::kOpOpaque);
  for (uint32_t i = 0; i < count && i < kExtraRoom; ++i) {
    if (!builder.touches(hidden[i].id)) {
      builder.touch(hidden[i], hidden[i].address, 0, kReadWrite, trace::kNoParameter);
    }
  }
}

// What a kernel reaches without any parameter: its module's variables, memory behind texture objects.
void add_unnamed(CommandBuilder& builder, const Function& function) {
  if (const Owner* owner = function.owner; owner != nullptr) {
    for (const auto* shared : {&owner->variables, &owner->output}) {
      const uint64_t id = shared->load(std::memory_order_relaxed);
      if (id != 0) builder.touch_unplaced(id);
    }
    const uint32_t count = owner->global_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      Allocation global;
      if (!find_allocation(owner->globals[i].address, &global) || builder.touches(global.id)) continue;
      builder.touch(global, global.address, 0, kReadWrite, trace::kNoParameter);
    }
  }
  if (any_hidden()) add_hidden(builder);
}

// False: the content is not as expected; then every word counts.
bool scan_structure(CommandBuilder& builder, const structures::Structure& structure, const uint8_t* parameters,
                    structures::Grid grid) {
  const auto is_live = [](void* /*user*/, uint64_t word) {
    Allocation ignored;
    return find_allocation(word, &ignored);
  };
  structures::Range ranges[structures::kMostRanges];
  const uint32_t count = structures::used_ranges(structure, parameters, grid, is_live, nullptr, ranges);
  for (uint32_t i = 0; i < count; ++i) {
    scan_words(builder, parameters, ranges[i].begin, ranges[i].end - ranges[i].begin);
  }
  return count > 0;
}

// An operand of a library's call that lies in memory which may move; several in one allocation are one.
struct MovableOperand {
  Allocation allocation;
  CUdeviceptr address;
  uint32_t mode;
  uint32_t number;  // in the call
  bool named;       // by a word of the parameters
};

uint32_t find_movable(const DeclaredCall& call, MovableOperand* found) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < call.count; ++i) {
    MovableOperand operand{{}, call.operands[i].address, call.operands[i].mode, i, false};
    if (!find_allocation(operand.address, &operand.allocation) || !is_device_memory(operand.allocation.origin)) {
      continue;
    }
    uint32_t at = 0;
    while (at < count && found[at].allocation.id != operand.allocation.id) ++at;
    if (at < count) {
      found[at].mode |= operand.mode;
    } else {
      found[count++] = operand;
    }
  }
  return count;
}

// The library's call says all that its launches touch. One of several launches may name a part of it alone; what none
// of its words leads to is an operand all the same. What words lead to besides is the library's, or a number.
void use_declared(CommandBuilder& builder, const DeclaredCall& call) {
  MovableOperand operands[kMostDeclared];
  const uint32_t count = find_movable(call, operands);
  for (uint32_t at = 0; at < builder.command.access_count; ++at) {
    Access& access = builder.accesses[at];
    for (uint32_t i = 0; i < count; ++i) {
      if (access.allocation != operands[i].allocation.id) continue;
      access.mode = operands[i].mode;
      operands[i].named = true;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const MovableOperand& operand = operands[i];
    if (operand.named) continue;
    builder.touch(operand.allocation, operand.address, 0, operand.mode, trace::kDeclaredParameter + operand.number);
  }
  builder.flag(trace::kOpDeclared);
}

}  // namespace

void scan_words(CommandBuilder& builder, const uint8_t* parameters, uint32_t begin, uint32_t bytes) noexcept {
  const uint32_t end = begin + bytes;
  for (uint32_t at = (begin + 7) & ~7u; at + 8 <= end; at += 8) {
    uint64_t word;
    std::memcpy(&word, parameters + at, sizeof word);
    Allocation allocation;
    if (!find_allocation(word, &allocation)) continue;
    builder.touch(allocation, word, 0, kReadWrite, at);
  }
}

void scan_launch(CommandBuilder& builder, const Function& function, const uint8_t* parameters, uint32_t parameter_bytes,
                 structures::Grid grid) noexcept {
  const bool descriptors = any_tensor_map();
  if (function.layout_known) {
    for (uint32_t i = 0; i < function.parameter_count; ++i) {
      const trace::ParameterLayout layout = function.parameters[i];
      if (layout.offset + layout.bytes > parameter_bytes) break;
      const structures::Structure* const structure = function.structures.find(layout.offset);
      if (structure != nullptr && scan_structure(builder, *structure, parameters, grid)) continue;
      scan_words(builder, parameters, layout.offset, layout.bytes);
      if (descriptors) scan_tensor_maps(builder, parameters, layout.offset, layout.bytes);
    }
  } else {
    scan_words(builder, parameters, 0, parameter_bytes);
    if (descriptors) scan_tensor_maps(builder, parameters, 0, parameter_bytes);
  }
  add_unnamed(builder, function);
  if (function.opaque) builder.flag(trace::kOpOpaque);
  if (const DeclaredCall* call = declared_call(); call != nullptr && call->complete) {
    use_declared(builder, *call);
    without_pointees(builder);
  } else {
    add_pointees(builder, function.id);
  }
}

uint32_t access_room(uint32_t parameter_bytes) noexcept {
  const uint32_t wanted = parameter_bytes / 8 + 2 * kExtraRoom;
  return wanted < kMaxRoom ? wanted : kMaxRoom;
}

}  // namespace reprise
