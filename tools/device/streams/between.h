// The order of work between contexts. Caller: the copies between contexts that name no stream.
#pragma once
#include <functional>

#include "tools/device/base/cuda_api.h"

namespace reprise::sim {

class Context;

// `copy` submits work to the default stream of the current context. It runs when all that was submitted to the three
// contexts before is done, and what is submitted to them later waits for it; the host waits for nothing. As
// cuda_runtime_api.h says of cudaMemcpyPeer: "asynchronous with respect to the host, but serialized with respect all
// pending and future asynchronous work in to the current device, srcDevice, and dstDevice".
CUresult submit_between(Context& current, CUcontext to, CUcontext from, const std::function<CUresult()>& copy);

}  // namespace reprise::sim
