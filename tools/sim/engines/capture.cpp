#include "tools/sim/engines/capture.h"

namespace reprise::sim {

// No function starts a capture yet.
CUresult refuse_in_capture() { return CUDA_SUCCESS; }
CUresult refuse_captured(Stream&) { return CUDA_SUCCESS; }
CUresult refuse_captured(Event&) { return CUDA_SUCCESS; }
CUresult refuse_captured(Context&) { return CUDA_SUCCESS; }
CUresult refuse_implicit_order(Stream&) { return CUDA_SUCCESS; }
CUresult capture_operation(Stream&, OperationPointer) { return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; }
CUresult capture_record(const std::shared_ptr<Stream>&, const std::shared_ptr<Event>&, unsigned) {
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
CUresult capture_wait(const std::shared_ptr<Stream>&, const std::shared_ptr<Event>&, unsigned, bool* captured) {
  *captured = false;
  return CUDA_SUCCESS;
}
CUresult capture_allocation(Stream&, Pool&, uint64_t, CUdeviceptr*) { return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; }
CUresult capture_free(Stream&, CUdeviceptr) { return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; }
CUresult abandon_capture(Stream&) { return CUDA_SUCCESS; }

}  // namespace reprise::sim
