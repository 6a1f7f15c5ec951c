#include "preload/access/command_builder.h"

#include <cstring>

#include "preload/base/runtime.h"
#include "preload/base/sequence.h"
#include "preload/driver/driver.h"
#include "preload/record/recorder.h"
#include "preload/trace/signature.h"

namespace reprise {

CommandBuilder::CommandBuilder(trace::OpKind op, const char* name, CUstream stream, Access* room,
                               uint32_t room_entries) noexcept
    : accesses(room), capacity(room_entries) {
  command.op = op;
  command.name = name;
  command.stream = stream;
  command.accesses = room;
}

void CommandBuilder::touch(const Allocation& allocation, CUdeviceptr address, uint64_t bytes, uint32_t mode,
                           uint32_t parameter_offset) noexcept {
  if (command.access_count == capacity) {
    flag(trace::kOpOpaque);
    return;
  }
  // Of bits, not of branches: for each pointer of each launch.
  const bool readable = is_host_readable(allocation.origin);
  const bool writes = (mode & trace::kAccessWrite) != 0;
  holds_pointers |= allocation.holds_pointers;
  host_readable |= readable;
  unscanned |= allocation.written | allocation.unknown | readable;
  fresh_writes |= writes & !allocation.written & ((allocation.size < kLargestLook) | readable);
  command.operand_bytes += allocation.size;
  const uint64_t offset = address - allocation.address;
  const uint64_t rest = allocation.size - offset;
  accesses[command.access_count++] = {{allocation.id, offset, bytes > rest ? rest : bytes, parameter_offset, mode},
                                      address};
  if (allocation.origin == trace::Origin::host && writes) flag(trace::kOpHostVisible);
}

bool CommandBuilder::touch(CUdeviceptr address, uint64_t bytes, uint32_t mode, uint32_t parameter_offset) noexcept {
  Allocation allocation;
  if (!find_allocation(address, &allocation)) return false;
  touch(allocation, address, bytes, mode, parameter_offset);
  return true;
}

void CommandBuilder::touch_unplaced(uint64_t allocation) noexcept {
  Allocation unplaced;
  unplaced.id = allocation;
  unplaced.size = 1;
  touch(unplaced, 0, 1, trace::kAccessRead | trace::kAccessWrite, trace::kNoParameter);
}

bool CommandBuilder::touches(uint64_t allocation) const noexcept {
  for (uint32_t i = 0; i < command.access_count; ++i) {
    if (accesses[i].allocation == allocation) return true;
  }
  return false;
}

void record_opaque(const char* name) noexcept {
  mark_all_written();
  Recorder* recorder = runtime().recorder;
  if (recorder == nullptr) return;
  CommandBuilder builder(trace::OpKind::other, name, CU_STREAM_LEGACY, nullptr, 0);
  builder.flag(trace::kOpOpaque);
  Command& command = builder.command;
  command.sequence = next_sequence();
  command.signature =
      trace::op_signature(command.op, trace::hash_bytes(name, std::strlen(name)), command.grid, command.block, 0, 0, 0);
  if (driver().cuCtxGetDevice(&command.device) != CUDA_SUCCESS) command.device = 0;
  recorder->op(command, CUDA_SUCCESS, Recorder::now_ns());
}

}  // namespace reprise
