#include "tools/device/streams/dispatch.h"

#include "tools/device/streams/capture.h"

namespace reprise::sim {

CUresult find_work_stream(Context& context, CUstream handle, std::shared_ptr<Stream>* stream) {
  if (const CUresult result = resolve_stream(context, handle, stream); result != CUDA_SUCCESS) return result;
  if (const CUresult result = (*stream)->context.status(); result != CUDA_SUCCESS) return result;
  return refuse_implicit_order(**stream);
}

CUresult dispatch(Context& context, CUstream handle, OperationPointer operation, Dispatched* dispatched) {
  Dispatched local;
  Dispatched& out = dispatched == nullptr ? local : *dispatched;
  if (const CUresult result = find_work_stream(context, handle, &out.stream); result != CUDA_SUCCESS) return result;
  if (out.stream->capturing.load(std::memory_order_relaxed)) {
    out.captured = true;
    return capture_operation(*out.stream, std::move(operation));
  }
  out.position = out.stream->submit(std::move(operation));
  return CUDA_SUCCESS;
}

CUresult wait_dispatched(const Dispatched& dispatched) {
  if (dispatched.captured || dispatched.stream == nullptr) return CUDA_SUCCESS;
  dispatched.stream->wait_for(dispatched.position);
  return dispatched.stream->context.status();
}

}  // namespace reprise::sim
