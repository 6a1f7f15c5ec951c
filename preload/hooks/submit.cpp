#include "preload/hooks/submit.h"

#include "preload/access/looks.h"
#include "preload/access/pointees.h"
#include "preload/base/runtime.h"
#include "preload/base/sequence.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/record/recorder.h"
#include "preload/trace/signature.h"

namespace reprise {

CUresult submit(CommandBuilder& builder) noexcept {
  if (builder.refused) return CUDA_ERROR_INVALID_VALUE;
  Command& command = builder.command;
  const Runtime& active = runtime();
  Recorder* const recorder = active.recorder;
  const bool records = recorder != nullptr && !recorder->paused();
  const uint64_t called_ns = records ? Recorder::now_ns() : 0;
  command.sequence = next_sequence();
  command.stream_id = stream_id(command.stream);
  if (driver().cuCtxGetCurrent(&command.context) != CUDA_SUCCESS) command.context = nullptr;
  if (command.signature == 0) {
    command.signature = trace::op_signature(command.op, 0, command.grid, command.block, command.shared_bytes,
                                            command.size, command.access_count);
  }
  if (records) command.call_site = recorder->call_site(command.signature);
  const CUresult result = active.handler->order.submit(command);
  if (result == kLookFirst) {
    look_again(builder);
    return submit(builder);
  }
  // The handler may have paused or resumed it.
  if (recorder != nullptr && !recorder->paused()) {
    if (driver().cuCtxGetDevice(&command.device) != CUDA_SUCCESS) command.device = 0;
    recorder->op(command, result, called_ns);
  }
  if (result == CUDA_SUCCESS) mark_submitted(builder);
  return result;
}

namespace {

bool reaches_past(const Allocation& allocation, CUdeviceptr address, uint64_t bytes) {
  return bytes > allocation.size - (address - allocation.address);
}

}  // namespace

bool outside_memory(CUdeviceptr address, uint64_t bytes) noexcept {
  if (!managing() || bytes == 0) return false;
  Allocation allocation;
  if (!find_allocation(address, &allocation)) return runtime().handler->memory.makes(address);
  return is_device_memory(allocation.origin) && reaches_past(allocation, address, bytes);
}

bool hold_to_memory(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes) noexcept {
  if (!managing() || bytes == 0) return true;
  Allocation allocation;
  unsigned type = 0;
  if (find_allocation(address, &allocation)) {
    if (!reaches_past(allocation, address, bytes)) return true;
    builder.refused |= is_device_memory(allocation.origin);
  } else if (runtime().handler->memory.makes(address)) {
    builder.refused = true;
  } else if (driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS) {
    return true;
  }
  builder.command.first_of_shape = true;
  return false;
}

bool touch_managed(CommandBuilder& builder, std::initializer_list<CUdeviceptr> addresses) noexcept {
  if (!managing()) return false;
  for (const CUdeviceptr address : addresses) {
    Allocation allocation;
    if (address != 0 && find_allocation(address, &allocation) && is_device_memory(allocation.origin)) {
      builder.touch(allocation, address, 0, trace::kAccessRead, trace::kNoParameter);
    }
  }
  return builder.command.access_count > 0;
}

CUresult look_up(CommandBuilder& builder) noexcept {
  Command& command = builder.command;
  command.captured = true;
  if (driver().cuCtxGetCurrent(&command.context) != CUDA_SUCCESS) command.context = nullptr;
  return runtime().handler->order.submit(command);
}

bool pageable(const void* host) noexcept {
  Allocation allocation;
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  if (find_allocation(address, &allocation)) return false;
  unsigned type = 0;
  return driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS;
}

}  // namespace reprise
