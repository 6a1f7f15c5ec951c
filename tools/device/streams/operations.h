// Makers of the simple operations. Callers: the API functions, events, graphs.
#pragma once
#include "tools/device/base/cuda_api.h"
#include "tools/device/base/operation.h"

namespace reprise::sim {

// Does nothing: carries waits, or joins graph branches.
OperationPointer empty_operation();

// Calls function(data) on the stream's thread, where the driver may not be called. Not after a failure.
OperationPointer host_operation(CUhostFn function, void* data);

// cuStreamAddCallback's: also called after a failure, with its code.
OperationPointer callback_operation(CUstream stream, CUstreamCallback callback, void* data);

// For host nodes of graphs: what host_operation() was made of.
CUDA_HOST_NODE_PARAMS host_parameters(const Operation& operation);

}  // namespace reprise::sim
