#include "preload/access/launch_payload.h"

#include <alloca.h>

#include <cstddef>
#include <cstring>

#include "preload/calls/command.h"
#include "preload/driver/driver.h"
#include "preload/trace/signature.h"

namespace reprise {
namespace {

constexpr uint32_t kAlignment = 16;
uint32_t aligned(uint32_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool is_dependent_launch(CUlaunchAttributeID id) { return id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION; }
bool names_event(CUlaunchAttributeID id) {
  return id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

// The bytes of an attribute's value that its kind has. Callers leave the rest of the union as it was. No default: the
// compiler names the kinds that a newer cuda.h has besides.
size_t value_bytes(CUlaunchAttributeID id) {
  constexpr CUlaunchAttributeValue kValue{};
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
      return 0;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return offsetof(CUaccessPolicyWindow, missProp) + sizeof(CUaccessPolicyWindow::missProp);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return sizeof kValue.cooperative;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return sizeof kValue.syncPolicy;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return sizeof kValue.clusterDim;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return sizeof kValue.clusterSchedulingPolicyPreference;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return sizeof kValue.programmaticStreamSerializationAllowed;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return sizeof kValue.programmaticEvent;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return sizeof kValue.priority;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return sizeof kValue.memSyncDomainMap;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return sizeof kValue.memSyncDomain;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      return sizeof kValue.preferredClusterDim;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return sizeof(CUevent) + sizeof kValue.launchCompletionEvent.flags;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return sizeof kValue.deviceUpdatableKernelNode.deviceUpdatable;  // the driver writes the other half
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return sizeof kValue.sharedMemCarveout;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return sizeof kValue.nvlinkUtilCentricScheduling;
  }
  return sizeof kValue;
}

// The buffer of `extra`: pairs of a tag and a value, ended by CU_LAUNCH_PARAM_END.
bool find_buffer(void** extra, const void** buffer, size_t* bytes) {
  constexpr int kMaxPairs = 8;
  *buffer = nullptr;
  *bytes = 0;
  for (int pair = 0; pair < kMaxPairs; ++pair, extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_END) return *buffer != nullptr;
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = extra[1];
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      *bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  return false;
}

// Most are pointers and ints, which a move copies in less time than a call of memcpy() takes.
void copy_parameter(uint8_t* to, const void* from, uint32_t bytes) {
  switch (bytes) {
    case sizeof(uint64_t):
      std::memcpy(to, from, sizeof(uint64_t));
      return;
    case sizeof(uint32_t):
      std::memcpy(to, from, sizeof(uint32_t));
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

CUresult call_driver(const LaunchRequest& request, CUstream stream) {
  const auto& call = driver();
  const uint32_t* grid = request.grid;
  const uint32_t* block = request.block;
  switch (request.form) {
    case LaunchRequest::Form::cooperative:
      return call.cuLaunchCooperativeKernel(request.handle, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                            request.shared_bytes, stream, request.parameters);
    case LaunchRequest::Form::extended: {
      CUlaunchConfig config{};
      config.gridDimX = grid[0];
      config.gridDimY = grid[1];
      config.gridDimZ = grid[2];
      config.blockDimX = block[0];
      config.blockDimY = block[1];
      config.blockDimZ = block[2];
      config.sharedMemBytes = request.shared_bytes;
      config.hStream = stream;
      config.attrs = const_cast<CUlaunchAttribute*>(request.attributes);
      config.numAttrs = request.attribute_count;
      return call.cuLaunchKernelEx(&config, request.handle, request.parameters, request.extra);
    }
    case LaunchRequest::Form::plain:
      break;
  }
  return call.cuLaunchKernel(request.handle, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                             request.shared_bytes, stream, request.parameters, request.extra);
}

}  // namespace

LaunchPlan plan_launch(const LaunchRequest& request, const Function* function, bool managed) noexcept {
  LaunchPlan plan{LaunchPayload::Source::raw, 0, 0, nullptr, 0, false};
  for (uint32_t i = 0; i < request.attribute_count; ++i) {
    plan.events = plan.events || names_event(request.attributes[i].id);
    if (!managed || !is_dependent_launch(request.attributes[i].id)) ++plan.attribute_count;
  }
  size_t bytes = 0;
  if (request.parameters == nullptr && request.extra == nullptr) {
    // No parameters given. For a kernel that has some, the driver answers an error, which must come at once.
    const bool none = function != nullptr && function->layout_known && function->parameter_count == 0;
    plan.source = none ? LaunchPayload::Source::none : LaunchPayload::Source::raw;
  } else if (request.parameters != nullptr && request.extra != nullptr) {
    plan.source = LaunchPayload::Source::raw;  // an error by the driver's rules
  } else if (request.parameters != nullptr) {
    if (function != nullptr && function->layout_known) {
      plan.source = LaunchPayload::Source::list;
      bytes = function->parameter_bytes;
    }
  } else if (find_buffer(request.extra, &plan.buffer, &bytes)) {
    plan.source = LaunchPayload::Source::buffer;
  }
  const size_t head = aligned(sizeof(LaunchPayload)) + plan.attribute_count * sizeof(CUlaunchAttribute);
  if (head + bytes + 2 * kAlignment > kMaxPayloadBytes) {
    plan.source = LaunchPayload::Source::raw;
    bytes = 0;
  }
  if (plan.source == LaunchPayload::Source::raw) bytes = 0;
  plan.parameter_bytes = static_cast<uint32_t>(bytes);
  plan.payload_bytes = aligned(static_cast<uint32_t>(head)) + aligned(plan.parameter_bytes);
  return plan;
}

void build_launch(const LaunchRequest& request, const Function* function, const LaunchPlan& plan, bool managed,
                  void* memory) noexcept {
  auto* payload = static_cast<LaunchPayload*>(memory);
  auto* bytes = static_cast<uint8_t*>(memory);
  // Field by field, each once: a launch would wait for the `rep stos` that zeroes the whole first.
  payload->form = request.form;
  payload->source = plan.source;
  payload->handle = request.handle;
  payload->function = function;
  std::memcpy(payload->grid, request.grid, sizeof request.grid);
  std::memcpy(payload->block, request.block, sizeof request.block);
  payload->shared_bytes = request.shared_bytes;
  payload->attribute_count = plan.attribute_count;
  payload->attributes_offset = aligned(sizeof(LaunchPayload));
  payload->parameters_offset = plan.payload_bytes - aligned(plan.parameter_bytes);
  payload->parameter_bytes = plan.parameter_bytes;
  const bool raw = plan.source == LaunchPayload::Source::raw;
  payload->raw_parameters = raw ? request.parameters : nullptr;
  payload->raw_extra = raw ? request.extra : nullptr;
  auto* attributes = reinterpret_cast<CUlaunchAttribute*>(bytes + payload->attributes_offset);
  for (uint32_t i = 0, kept = 0; i < request.attribute_count; ++i) {
    if (managed && is_dependent_launch(request.attributes[i].id)) continue;
    attributes[kept++] = request.attributes[i];
  }
  uint8_t* parameters = bytes + payload->parameters_offset;
  switch (plan.source) {
    case LaunchPayload::Source::list:
      // One by one: offsets need not start at 0 or lie side by side. Gaps are zero, so equal launches have equal bytes.
      std::memset(parameters, 0, plan.parameter_bytes);
      for (uint32_t i = 0; i < function->parameter_count; ++i) {
        const trace::ParameterLayout layout = function->parameters[i];
        copy_parameter(parameters + layout.offset, request.parameters[i], layout.bytes);
      }
      break;
    case LaunchPayload::Source::buffer:
      std::memcpy(parameters, plan.buffer, plan.parameter_bytes);
      break;
    case LaunchPayload::Source::raw:
    case LaunchPayload::Source::none:
      break;
  }
}

CUresult issue_launch(const void* memory, CUstream stream) noexcept {
  const auto* payload = static_cast<const LaunchPayload*>(memory);
  auto* bytes = static_cast<uint8_t*>(const_cast<void*>(memory));  // the driver's signatures know no const
  uint8_t* parameters = bytes + payload->parameters_offset;
  LaunchRequest request{};
  request.form = payload->form;
  request.handle = payload->handle;
  std::memcpy(request.grid, payload->grid, sizeof request.grid);
  std::memcpy(request.block, payload->block, sizeof request.block);
  request.shared_bytes = payload->shared_bytes;
  request.attributes = reinterpret_cast<const CUlaunchAttribute*>(bytes + payload->attributes_offset);
  request.attribute_count = payload->attribute_count;
  size_t buffer_bytes = payload->parameter_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &buffer_bytes,
                   CU_LAUNCH_PARAM_END};
  switch (payload->source) {
    case LaunchPayload::Source::list: {
      const Function& function = *payload->function;
      // One more than needed: a list of none is still a list.
      auto** list = static_cast<void**>(alloca((function.parameter_count + 1) * sizeof(void*)));
      for (uint32_t i = 0; i < function.parameter_count; ++i) list[i] = parameters + function.parameters[i].offset;
      request.parameters = list;
      return call_driver(request, stream);
    }
    case LaunchPayload::Source::buffer:
      request.extra = extra;
      break;
    case LaunchPayload::Source::raw:
      request.parameters = payload->raw_parameters;
      request.extra = payload->raw_extra;
      break;
    case LaunchPayload::Source::none:
      break;
  }
  return call_driver(request, stream);
}

CUresult issue_request(const void* request, CUstream stream) noexcept {
  return call_driver(*static_cast<const LaunchRequest*>(request), stream);
}

CUresult launch_now(const LaunchRequest& request) noexcept { return call_driver(request, request.stream); }

uint64_t shape_of(const LaunchRequest& request, const Function& function, uint64_t grid) noexcept {
  uint64_t hash = trace::op_signature(grid, request.shared_bytes, static_cast<uint64_t>(request.form), 0);
  hash = trace::hash_mix(hash, function.id);
  for (uint32_t i = 0; i < request.attribute_count; ++i) {
    hash = trace::hash_mix(hash, static_cast<uint64_t>(request.attributes[i].id));
    hash = trace::hash_bytes(&request.attributes[i].value, value_bytes(request.attributes[i].id), hash);
  }
  return hash | 1;
}

}  // namespace reprise
