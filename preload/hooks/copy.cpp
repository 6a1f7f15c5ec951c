// Copies of one range of bytes.
#include <cstddef>

#include "preload/base/export.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/hooks/copy_ends.h"
#include "preload/hooks/submit.h"

namespace reprise {
namespace {

enum class LinearForm : uint32_t { any, host_to_device, device_to_host, device_to_device, peer };

struct LinearCopy {
  LinearForm form;
  bool async;
  CUdeviceptr to;
  CUdeviceptr from;
  size_t bytes;
  CUcontext to_context;
  CUcontext from_context;
  Place to_place;  // known while describing
  Place from_place;

  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& copy = *static_cast<const LinearCopy*>(payload);
    return copy.async ? copy.issue_async(stream) : copy.issue_now(stream == CU_STREAM_PER_THREAD);
  }

  void describe(CommandBuilder& builder) const noexcept {
    builder.command.size = bytes;
    classify(builder, from_place, to_place);
    if (form == LinearForm::peer) builder.command.op = trace::OpKind::copy_peer;
    touch_source(builder, from, bytes, from_place);
    touch_target(builder, to, bytes, to_place, true);
    // A synchronous copy within the device does not wait (CUDA's API synchronisation rules).
    if (!async && (from_place != Place::device || to_place != Place::device)) builder.flag(trace::kOpSynchronous);
    if (builder.command.host_source != nullptr) builder.command.host_source_offset = offsetof(LinearCopy, from);
  }

 private:
  const void* host_from() const noexcept { return reinterpret_cast<const void*>(from); }
  void* host_to() const noexcept { return reinterpret_cast<void*>(to); }

  CUresult issue_now(bool per_thread) const noexcept {
    const auto& call = driver();
    switch (form) {
      case LinearForm::host_to_device:
        return (per_thread ? call.cuMemcpyHtoD_v2_ptds : call.cuMemcpyHtoD_v2)(to, host_from(), bytes);
      case LinearForm::device_to_host:
        return (per_thread ? call.cuMemcpyDtoH_v2_ptds : call.cuMemcpyDtoH_v2)(host_to(), from, bytes);
      case LinearForm::device_to_device:
        return (per_thread ? call.cuMemcpyDtoD_v2_ptds : call.cuMemcpyDtoD_v2)(to, from, bytes);
      case LinearForm::peer:
        return (per_thread ? call.cuMemcpyPeer_ptds : call.cuMemcpyPeer)(to, to_context, from, from_context, bytes);
      case LinearForm::any:
        break;
    }
    return (per_thread ? call.cuMemcpy_ptds : call.cuMemcpy)(to, from, bytes);
  }

  CUresult issue_async(CUstream stream) const noexcept {
    const auto& call = driver();
    switch (form) {
      case LinearForm::host_to_device:
        return call.cuMemcpyHtoDAsync(to, host_from(), bytes, stream);
      case LinearForm::device_to_host:
        return call.cuMemcpyDtoHAsync(host_to(), from, bytes, stream);
      case LinearForm::device_to_device:
        return call.cuMemcpyDtoDAsync(to, from, bytes, stream);
      case LinearForm::peer:
        return call.cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream);
      case LinearForm::any:
        break;
    }
    return call.cuMemcpyAsync(to, from, bytes, stream);
  }
};

const char* name_of(LinearForm form) {
  switch (form) {
    case LinearForm::host_to_device:
      return "memcpy H2D";
    case LinearForm::device_to_host:
      return "memcpy D2H";
    case LinearForm::device_to_device:
      return "memcpy D2D";
    case LinearForm::peer:
      return "memcpy peer";
    case LinearForm::any:
      break;
  }
  return "memcpy";
}

CUresult run(LinearCopy copy, CUstream stream) {
  const HookScope scope;
  if (!scope) return LinearCopy::issue(&copy, stream);
  if (capturing(stream)) {
    if (outside_memory(copy.to, copy.bytes) || outside_memory(copy.from, copy.bytes)) return CUDA_ERROR_INVALID_VALUE;
    return with_operands(name_of(copy.form), {copy.to, copy.from},
                         [&copy, stream] { return LinearCopy::issue(&copy, stream); });
  }
  const bool from_device = copy.form == LinearForm::device_to_host || copy.form == LinearForm::device_to_device;
  const bool to_device = copy.form == LinearForm::host_to_device || copy.form == LinearForm::device_to_device;
  copy.from_place = from_device ? Place::device : place_of(copy.from);
  copy.to_place = to_device ? Place::device : place_of(copy.to);
  Access room[2];
  CommandBuilder builder(trace::OpKind::other, name_of(copy.form), stream, room, 2);
  builder.command.issue = &LinearCopy::issue;
  builder.command.payload = &copy;
  builder.command.payload_bytes = sizeof copy;
  copy.describe(builder);
  const CUresult result = submit(builder);
  if (result == CUDA_SUCCESS) follow_pointers(copy.to, copy.to_place, copy.from, copy.from_place, copy.bytes);
  return result;
}

CUresult now(LinearForm form, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
             CUcontext to_context = nullptr, CUcontext from_context = nullptr) {
  return run({form, false, to, from, bytes, to_context, from_context, Place::device, Place::device}, stream);
}
CUresult async(LinearForm form, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
               CUcontext to_context = nullptr, CUcontext from_context = nullptr) {
  return run({form, true, to, from, bytes, to_context, from_context, Place::device, Place::device}, stream);
}
CUdeviceptr number(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

// A batch promises no order among its copies, so one after the other is one of its meanings; the driver's batch is only
// cheaper. `failed` (may be nullptr): index of the copy that could not be made.
CUresult batch(CUdeviceptr* to, CUdeviceptr* from, const size_t* bytes, size_t count, CUmemcpyAttributes* attributes,
               size_t attribute_count, size_t* failed, CUstream stream) {
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = async(LinearForm::any, to[i], from[i], bytes[i], stream);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  bool during_call = false;
  for (size_t i = 0; i < attribute_count; ++i) {
    during_call = during_call || attributes[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  }
  if (!during_call) return CUDA_SUCCESS;
  const HookScope scope;  // the program may change the sources when this call returns
  return scope ? runtime().handler->order.stream_synchronize(stream) : driver().cuStreamSynchronize(stream);
}

// False for what the driver refuses itself, null arrays and the legacy default stream, too.
bool batch_is_ours(const void* to, const void* from, const void* bytes, const void* attributes, CUstream stream) {
  return watch_flags() != 0 && !detail::inside_hook && !capturing(stream) && stream != CU_STREAM_LEGACY &&
         to != nullptr && from != nullptr && bytes != nullptr && attributes != nullptr;
}

}  // namespace
}  // namespace reprise

using namespace reprise;

#define REPRISE_COPY_FORM(name, form)                                                                      \
  REPRISE_EXPORT CUresult cuMemcpy##name##_v2(REPRISE_COPY_PARAMETERS_##form) {                            \
    return now(LinearForm::form, REPRISE_COPY_ARGUMENTS_##form, CU_STREAM_LEGACY);                         \
  }                                                                                                        \
  REPRISE_EXPORT CUresult cuMemcpy##name##_v2_ptds(REPRISE_COPY_PARAMETERS_##form) {                       \
    return now(LinearForm::form, REPRISE_COPY_ARGUMENTS_##form, CU_STREAM_PER_THREAD);                     \
  }                                                                                                        \
  REPRISE_EXPORT CUresult cuMemcpy##name##Async_v2(REPRISE_COPY_PARAMETERS_##form, CUstream stream) {      \
    return async(LinearForm::form, REPRISE_COPY_ARGUMENTS_##form, explicit_stream(stream, kLegacy));       \
  }                                                                                                        \
  REPRISE_EXPORT CUresult cuMemcpy##name##Async_v2_ptsz(REPRISE_COPY_PARAMETERS_##form, CUstream stream) { \
    return async(LinearForm::form, REPRISE_COPY_ARGUMENTS_##form, explicit_stream(stream, kPerThread));    \
  }
#define REPRISE_COPY_PARAMETERS_host_to_device CUdeviceptr to, const void *from, size_t bytes
#define REPRISE_COPY_ARGUMENTS_host_to_device to, number(from), bytes
#define REPRISE_COPY_PARAMETERS_device_to_host void *to, CUdeviceptr from, size_t bytes
#define REPRISE_COPY_ARGUMENTS_device_to_host number(to), from, bytes
#define REPRISE_COPY_PARAMETERS_device_to_device CUdeviceptr to, CUdeviceptr from, size_t bytes
#define REPRISE_COPY_ARGUMENTS_device_to_device to, from, bytes
REPRISE_COPY_FORM(HtoD, host_to_device)
REPRISE_COPY_FORM(DtoH, device_to_host)
REPRISE_COPY_FORM(DtoD, device_to_device)

REPRISE_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now(LinearForm::any, to, from, bytes, CU_STREAM_LEGACY);
}
REPRISE_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now(LinearForm::any, to, from, bytes, CU_STREAM_PER_THREAD);
}
REPRISE_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return async(LinearForm::any, to, from, bytes, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return async(LinearForm::any, to, from, bytes, explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t bytes) {
  return now(LinearForm::peer, to, from, bytes, CU_STREAM_LEGACY, to_context, from_context);
}
REPRISE_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                          CUcontext from_context, size_t bytes) {
  return now(LinearForm::peer, to, from, bytes, CU_STREAM_PER_THREAD, to_context, from_context);
}
REPRISE_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                          CUcontext from_context, size_t bytes, CUstream stream) {
  return async(LinearForm::peer, to, from, bytes, explicit_stream(stream, kLegacy), to_context, from_context);
}
REPRISE_EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                               CUcontext from_context, size_t bytes, CUstream stream) {
  return async(LinearForm::peer, to, from, bytes, explicit_stream(stream, kPerThread), to_context, from_context);
}

#define REPRISE_BATCH(suffix, zero)                                                                                    \
  REPRISE_EXPORT CUresult cuMemcpyBatchAsync_v2##suffix(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes,             \
                                                        size_t count, CUmemcpyAttributes* attributes, size_t* indices, \
                                                        size_t attribute_count, CUstream stream) {                     \
    const CUstream named = explicit_stream(stream, zero);                                                              \
    if (!batch_is_ours(to, from, bytes, attributes, named)) {                                                          \
      return driver().cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count, named);      \
    }                                                                                                                  \
    return batch(to, from, bytes, count, attributes, attribute_count, nullptr, named);                                 \
  }                                                                                                                    \
  REPRISE_EXPORT CUresult cuMemcpyBatchAsync##suffix(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,  \
                                                     CUmemcpyAttributes* attributes, size_t* indices,                  \
                                                     size_t attribute_count, size_t* failed, CUstream stream) {        \
    const CUstream named = explicit_stream(stream, zero);                                                              \
    if (!batch_is_ours(to, from, bytes, attributes, named)) {                                                          \
      return driver().cuMemcpyBatchAsync_v1(to, from, bytes, count, attributes, indices, attribute_count, failed,      \
                                            named);                                                                    \
    }                                                                                                                  \
    return batch(to, from, bytes, count, attributes, attribute_count, failed, named);                                  \
  }
#undef cuMemcpyBatchAsync
REPRISE_BATCH(, kLegacy)
REPRISE_BATCH(_ptsz, kPerThread)
