#include "preload/submit.h"

#include <cstring>

#include "preload/driver.h"
#include "preload/sequence.h"
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
  if (allocation.holds_pointers) holds_pointers = true;
  const uint64_t offset = address - allocation.address;
  const uint64_t rest = allocation.size - offset;
  accesses[command.access_count++] = {allocation.id,    address, offset, bytes > rest ? rest : bytes,
                                      parameter_offset, mode};
  if (allocation.origin == trace::Origin::host && (mode & trace::kAccessWrite) != 0) flag(trace::kOpHostVisible);
}

bool CommandBuilder::touch(CUdeviceptr address, uint64_t bytes, uint32_t mode, uint32_t parameter_offset) noexcept {
  Allocation allocation;
  if (!find_allocation(address, &allocation)) return false;
  touch(allocation, address, bytes, mode, parameter_offset);
  return true;
}

bool CommandBuilder::touches(uint64_t allocation) const noexcept {
  for (uint32_t i = 0; i < command.access_count; ++i) {
    if (accesses[i].allocation == allocation) return true;
  }
  return false;
}

CUresult submit(CommandBuilder& builder) noexcept {
  Command& command = builder.command;
  const Runtime& active = runtime();
  Recorder* const recorder = active.recorder != nullptr && !active.recorder->paused() ? active.recorder : nullptr;
  const uint64_t called_ns = recorder != nullptr ? Recorder::now_ns() : 0;
  command.sequence = next_sequence();
  command.stream_id = stream_id(command.stream);
  if (driver().cuCtxGetCurrent(&command.context) != CUDA_SUCCESS) command.context = nullptr;
  if (command.signature == 0) {
    command.signature = trace::op_signature(command.op, 0, command.grid, command.block, command.shared_bytes,
                                            command.stream_id, command.size, command.access_count);
  }
  if (recorder != nullptr) command.call_site = recorder->call_site(command.signature);
  const CUresult result = active.handler->submit(command);
  if (recorder != nullptr) recorder->op(command, result, called_ns);
  return result;
}

void record_opaque(const char* name) noexcept {
  Recorder* recorder = runtime().recorder;
  if (recorder == nullptr) return;
  CommandBuilder builder(trace::OpKind::other, name, CU_STREAM_LEGACY, nullptr, 0);
  builder.flag(trace::kOpOpaque);
  Command& command = builder.command;
  command.sequence = next_sequence();
  command.signature = trace::op_signature(command.op, trace::hash_bytes(name, std::strlen(name)), command.grid,
                                          command.block, 0, 0, 0, 0);
  recorder->op(command, CUDA_SUCCESS, Recorder::now_ns());
}

bool pageable(const void* host) noexcept {
  Allocation allocation;
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  if (find_allocation(address, &allocation)) return false;
  unsigned type = 0;
  return driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS;
}

}  // namespace reprise
