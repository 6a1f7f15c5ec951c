// Kernel launches and host functions.
#include <alloca.h>

#include <cstring>

#include "preload/access/arguments.h"
#include "preload/access/launch_payload.h"
#include "preload/base/config.h"
#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/submit.h"
#include "preload/trace/signature.h"

namespace reprise {
namespace {

RowId row_of(const LaunchRequest& request) {
  switch (request.form) {
    case LaunchRequest::Form::extended:
      return RowId::k_cuLaunchKernelEx;
    case LaunchRequest::Form::cooperative:
      return RowId::k_cuLaunchCooperativeKernel;
    case LaunchRequest::Form::plain:
      break;
  }
  return RowId::k_cuLaunchKernel;
}

const char* name_of(const LaunchRequest& request) { return row(row_of(request)).symbol; }

// May it be launched again, to see what it does? Not where blocks wait for each other or for other devices, and not
// where it reaches memory that no parameter names, or that others reach, too.
bool repeatable(const LaunchRequest& request, const CommandBuilder& builder) {
  const Command& command = builder.command;
  if (request.form == LaunchRequest::Form::cooperative || (command.flags & trace::kOpOpaque) != 0) return false;
  for (uint32_t i = 0; i < request.attribute_count; ++i) {
    if (request.attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return false;
  }
  if (builder.holds_pointers || builder.host_readable || command.access_count == 0) return false;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    if (!trace::is_in_parameters(command.accesses[i].parameter_offset)) return false;
  }
  return true;
}

// Out of line: the forwarded launch shall not pay for the stack frame of the understood one.
__attribute__((noinline)) CUresult understood(const LaunchRequest& request) {
  const Function* function = find_function(request.handle);
  const bool managed = managing();
  const LaunchPlan plan = plan_launch(request, function, managed);
  if (plan.events) {
    if (const CUresult order = before_ordered(row_of(request)); order != CUDA_SUCCESS) return order;
  }
  void* payload = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(alloca(plan.payload_bytes + 16)) + 15) & ~15ull);
  build_launch(request, function, plan, managed, payload);

  const uint32_t room = access_room(plan.parameter_bytes);
  auto* accesses = static_cast<Access*>(alloca(room * sizeof(Access)));
  CommandBuilder builder(trace::OpKind::launch, name_of(request), request.stream, accesses, room);
  Command& command = builder.command;
  command.issue = managed ? &issue_launch : &issue_request;  // not managed, nothing is deferred
  command.payload = managed ? payload : &request;
  command.payload_bytes = managed ? plan.payload_bytes : sizeof request;
  std::memcpy(command.grid, request.grid, sizeof request.grid);
  std::memcpy(command.block, request.block, sizeof request.block);
  command.shared_bytes = request.shared_bytes;
  uint64_t shape = 0;
  const bool opaque = plan.source == LaunchPayload::Source::raw || plan.events || function == nullptr;
  if (opaque) builder.flag(trace::kOpOpaque);
  if (function != nullptr) {
    const auto* bytes = static_cast<const uint8_t*>(payload);
    command.parameters = bytes + static_cast<const LaunchPayload*>(payload)->parameters_offset;
    command.parameter_bytes = plan.parameter_bytes;
    command.function = function->id;
    if (*function->name != '\0') command.name = function->name;
    scan_launch(builder, *function, command.parameters, command.parameter_bytes, {command.grid[0], command.grid[1]});
    const uint64_t grid = trace::grid_signature(command.op, function->name_hash, command.grid, command.block);
    command.signature = trace::op_signature(grid, command.shared_bytes, 0, builder.named_accesses);
    command.code = function->identity;
    const bool identified = managed && function->identity != 0 && identifying();
    if (identified && repeatable(request, builder)) command.kernel = function->identity;
    shape = shape_of(request, *function, grid);
  }
  // An opaque launch refers to the program's own arrays, so the handler must issue it before this call returns.
  command.first_of_shape = opaque || !shape_known(shape);
  const CUresult result = submit(builder);
  if (result == CUDA_SUCCESS && command.first_of_shape) mark_shape_known(shape);
  return result;
}

CUresult launch(const LaunchRequest& request) {
  const HookScope scope;
  if (!scope || capturing(request.stream)) return launch_now(request);
  return understood(request);
}

CUresult launch_extended(const CUlaunchConfig* config, CUfunction handle, void** parameters, void** extra,
                         DefaultStream zero) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
    return driver().cuLaunchKernelEx(config, handle, parameters, extra);
  }
  return launch({LaunchRequest::Form::extended,
                 handle,
                 {config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes,
                 explicit_stream(config->hStream, zero),
                 parameters,
                 extra,
                 config->attrs,
                 config->numAttrs});
}

// Runs on a driver thread between what stands before and behind it on the stream.
struct HostFunction {
  CUhostFn function;
  void* data;
  static constexpr trace::OpKind kOp = trace::OpKind::host_function;
  static constexpr const char* kName = "host function";
  static constexpr uint32_t kMaxAccesses = 1;
  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& self = *static_cast<const HostFunction*>(payload);
    return driver().cuLaunchHostFunc(stream, self.function, self.data);
  }
  void describe(CommandBuilder& builder) const noexcept { builder.flag(trace::kOpHostVisible); }
};

struct Callback {
  CUstreamCallback function;
  void* data;
  unsigned flags;
  static constexpr trace::OpKind kOp = trace::OpKind::host_function;
  static constexpr const char* kName = "stream callback";
  static constexpr uint32_t kMaxAccesses = 1;
  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& self = *static_cast<const Callback*>(payload);
    return driver().cuStreamAddCallback(stream, self.function, self.data, self.flags);
  }
  void describe(CommandBuilder& builder) const noexcept { builder.flag(trace::kOpHostVisible); }
};

}  // namespace
}  // namespace reprise

using namespace reprise;

#define REPRISE_LAUNCHES(suffix, zero)                                                                                 \
  REPRISE_EXPORT CUresult cuLaunchKernel##suffix(                                                                      \
      CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,        \
      unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra) {                     \
    const CUstream named = explicit_stream(stream, zero);                                                              \
    if (__builtin_expect(watch_flags() == 0, true)) {                                                                  \
      return driver().cuLaunchKernel(handle, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, named,   \
                                     parameters, extra);                                                               \
    }                                                                                                                  \
    return launch({LaunchRequest::Form::plain,                                                                         \
                   handle,                                                                                             \
                   {grid_x, grid_y, grid_z},                                                                           \
                   {block_x, block_y, block_z},                                                                        \
                   shared_bytes,                                                                                       \
                   named,                                                                                              \
                   parameters,                                                                                         \
                   extra,                                                                                              \
                   nullptr,                                                                                            \
                   0});                                                                                                \
  }                                                                                                                    \
  REPRISE_EXPORT CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig* config, CUfunction handle, void** parameters, \
                                                   void** extra) {                                                     \
    return launch_extended(config, handle, parameters, extra, zero);                                                   \
  }                                                                                                                    \
  REPRISE_EXPORT CUresult cuLaunchCooperativeKernel##suffix(                                                           \
      CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,        \
      unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters) {                                   \
    return launch({LaunchRequest::Form::cooperative,                                                                   \
                   handle,                                                                                             \
                   {grid_x, grid_y, grid_z},                                                                           \
                   {block_x, block_y, block_z},                                                                        \
                   shared_bytes,                                                                                       \
                   explicit_stream(stream, zero),                                                                      \
                   parameters,                                                                                         \
                   nullptr,                                                                                            \
                   nullptr,                                                                                            \
                   0});                                                                                                \
  }                                                                                                                    \
  REPRISE_EXPORT CUresult cuLaunchHostFunc##suffix(CUstream stream, CUhostFn function, void* data) {                   \
    return run_on_stream(HostFunction{function, data}, explicit_stream(stream, zero));                                 \
  }                                                                                                                    \
  REPRISE_EXPORT CUresult cuStreamAddCallback##suffix(CUstream stream, CUstreamCallback function, void* data,          \
                                                      unsigned flags) {                                                \
    return run_on_stream(Callback{function, data, flags}, explicit_stream(stream, zero));                              \
  }

REPRISE_LAUNCHES(, kLegacy)
REPRISE_LAUNCHES(_ptsz, kPerThread)
