// cuStreamCreate and its kin.
#include "tools/device/engines/clock.h"
#include "tools/device/engines/device.h"
#include "tools/device/engines/host_time.h"
#include "tools/device/memory/pool.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/event.h"
#include "tools/device/streams/operations.h"
#include "tools/device/streams/stream.h"

using namespace reprise::sim;

namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

CUresult create_stream(Context& context, CUstream* handle, unsigned flags, int priority) {
  SIM_REQUIRE(handle != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0, CUDA_ERROR_INVALID_VALUE);
  if (priority > kLeastPriority) priority = kLeastPriority;
  if (priority < kGreatestPriority) priority = kGreatestPriority;
  auto stream = std::make_shared<Stream>(context, StreamKind::created, flags, priority);
  stream->handle = streams().add(stream);
  SIM_REQUIRE(stream->handle != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  *handle = stream->handle;
  context.add_stream(std::move(stream));
  return CUDA_SUCCESS;
}

// *value = read(stream) of the stream that `handle` means.
template <typename Value, typename Read>
CUresult ask(Context& context, CUstream handle, Value* value, Read read) {
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(context, handle, &stream));
  *value = read(*stream);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  SIM_ENTER_CONTEXT(context);
  if (leastPriority != nullptr) *leastPriority = kLeastPriority;
  if (greatestPriority != nullptr) *greatestPriority = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  return create_stream(*context, phStream, Flags, kLeastPriority);
}

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  SIM_ENTER_CONTEXT(context);
  return create_stream(*context, phStream, flags, priority);
}

// Pending work goes on; the call does not wait for it.
CUresult cuStreamDestroy_v2(CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Stream> stream = streams().share(hStream);
  SIM_REQUIRE(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
  abandon_capture(*stream);
  streams().remove(hStream);
  stream->close();
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamQuery(CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  SIM_TRY(refuse_captured(*stream));
  const uint64_t position = stream->submitted();
  if (!stream->reached(position)) return CUDA_ERROR_NOT_READY;
  if (modelled_clock()) host_saw(stream->ended_ns(position));
  return stream->context.status();
}

CUresult cuStreamSynchronize(CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  SIM_TRY(refuse_captured(*stream));
  // The legacy stream stands for all blocking ones.
  stream->wait_for(stream->kind == StreamKind::legacy ? stream->submit(empty_operation()) : stream->submitted());
  trim_pools(stream->context.device);
  return stream->context.status();
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE((Flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) == 0, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Event> event = events().share(hEvent);
  SIM_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  bool captured = false;
  SIM_TRY(capture_wait(stream, event, hEvent, Flags, &captured));
  if (!captured) wait_event(*event, stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  SIM_ENTER_CONTEXT(context);
  return ask(*context, hStream, flags, [](const Stream& stream) { return stream.flags; });
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  SIM_ENTER_CONTEXT(context);
  return ask(*context, hStream, priority, [](const Stream& stream) { return stream.priority; });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  SIM_ENTER_CONTEXT(context);
  return ask(*context, hStream, streamId, [](const Stream& stream) { return stream.id; });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  SIM_ENTER_CONTEXT(context);
  return ask(*context, hStream, pctx, [](const Stream& stream) { return stream.context.handle; });
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  SIM_TRY(cuStreamGetCtx(hStream, pCtx));
  if (pGreenCtx != nullptr) *pGreenCtx = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  SIM_ENTER_CONTEXT(context);
  return ask(*context, hStream, device, [](const Stream& stream) { return stream.context.device.ordinal; });
}

// Managed memory is one kind of memory here, so attaching it only has to be ordered.
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  const auto range = memory_map().find(dptr);
  SIM_REQUIRE(range && range->kind == RangeKind::managed, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(length == 0 || (range->base == dptr && range->bytes == length), CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE,
              CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  SIM_REQUIRE(flags != CU_MEM_ATTACH_SINGLE || stream->kind != StreamKind::legacy, CUDA_ERROR_INVALID_VALUE);
  return dispatch(*context, hStream, empty_operation());
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(fn != nullptr, CUDA_ERROR_INVALID_VALUE);
  return dispatch(*context, hStream, host_operation(fn, userData));
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(callback != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(*context, hStream, &stream));
  SIM_TRY(refuse_captured(*stream));
  return dispatch(*context, hStream, callback_operation(hStream, callback, userData));
}

}  // extern "C"
