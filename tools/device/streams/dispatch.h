// The way of work from an API function to a stream, or into the graph that the stream is captured for. Callers: all API
// functions that take a stream.
#pragma once
#include <memory>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/operation.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {

struct Dispatched {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;
  bool captured = false;  // in a graph now: nothing to wait for
};

// The stream that `handle` means, if it and its context are in order.
CUresult find_work_stream(Context& context, CUstream handle, std::shared_ptr<Stream>* stream);

CUresult dispatch(Context& context, CUstream handle, OperationPointer operation, Dispatched* dispatched = nullptr);

// Waits for dispatched work; returns the sticky error if it or work before it failed.
CUresult wait_dispatched(const Dispatched& dispatched);

}  // namespace reprise::sim
