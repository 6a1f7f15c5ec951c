// Contexts: cuCtx* and cuDevicePrimaryCtx*.
#include <algorithm>

#include "tools/device/engines/device.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/pool.h"
#include "tools/device/modules/module.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/context.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/stream.h"

using namespace reprise::sim;

namespace {

constexpr unsigned kContextFlags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                   CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

bool are_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~kContextFlags) == 0 && (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
                                           schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

void push(Context* context) {
  ThreadState& thread = thread_state;
  if (thread.current != nullptr) {
    if (thread.below == nullptr) thread.below = new std::vector<Context*>;
    thread.below->push_back(thread.current);
  }
  thread.current = context;
}

Context* pop() {
  ThreadState& thread = thread_state;
  Context* top = thread.current;
  thread.current = nullptr;
  if (thread.below != nullptr && !thread.below->empty()) {
    thread.current = thread.below->back();
    thread.below->pop_back();
  }
  return top;
}

CUresult create(CUcontext* pctx, unsigned flags, CUdevice ordinal) {
  SIM_REQUIRE(pctx != nullptr && are_flags(flags), CUDA_ERROR_INVALID_VALUE);
  Device* device = find_device(ordinal);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  SIM_TRY(Context::process_status());
  Context* context = create_context(*device, flags, false);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  push(context);
  *pctx = context->handle;
  return CUDA_SUCCESS;
}

bool primary_lives(Device& device) {
  const std::lock_guard lock(device.mutex);
  return device.primary.references > 0;
}

CUresult synchronize(Context& context) {
  SIM_TRY(context.status());
  SIM_TRY(refuse_captured(context));
  context.drain();
  trim_pools(context.device);
  return context.status();
}

constexpr CUlimit kLimitsOfMemory[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE};

// What a higher limit takes of the device: a stack for each thread that may run at once, a heap and a buffer for the
// context. What the driver's own limits take is in REPRISE_SIM_CONTEXT_BYTES.
uint64_t bytes_beyond_default(CUlimit limit, uint64_t value) {
  constexpr uint64_t kThreads = 132ull * 2048;  // multiprocessors, threads of each: attributes.def
  const uint64_t more = value - std::min<uint64_t>(value, default_limit(limit));
  if (limit == CU_LIMIT_STACK_SIZE) return more * kThreads;
  return limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ? more : 0;
}

// Waits, then releases everything that was made in it: streams, events, modules, memory.
void tear_down(Context& context) {
  context.close();
  release_modules(context);
  release_memory(context);
  for (const CUlimit limit : kLimitsOfMemory) {
    context.device.refund(bytes_beyond_default(limit, context.limits[limit]));
    context.limits[limit] = default_limit(limit);
  }
  context.device.close_context();
}

bool is_limit(CUlimit limit) {
  return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
         limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ||
         limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

}  // namespace

extern "C" {

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  SIM_ENTER();
  return create(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(numParams == 0 || paramsArray != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(numParams == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  return create(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags, CUdevice dev) {
  SIM_ENTER();
  if (ctxCreateParams != nullptr) {
    SIM_REQUIRE(ctxCreateParams->numExecAffinityParams == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    SIM_REQUIRE(ctxCreateParams->cigParams == nullptr, CUDA_ERROR_NOT_SUPPORTED);
  }
  return create(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  SIM_ENTER();
  SIM_REQUIRE(ctx != nullptr, CUDA_ERROR_INVALID_VALUE);
  Context* context = find_context(ctx);
  SIM_REQUIRE(context != nullptr && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
  if (thread_state.current == context) pop();
  contexts().remove(ctx);
  tear_down(*context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  SIM_ENTER();
  SIM_REQUIRE(ctx != nullptr, CUDA_ERROR_INVALID_VALUE);
  Context* context = find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  push(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  SIM_ENTER();
  SIM_REQUIRE(thread_state.current != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const Context* context = pop();
  if (pctx != nullptr) *pctx = context->handle;
  return CUDA_SUCCESS;
}

// The forms of before CUDA 4 differ in nothing that can be seen here; some libraries still look them up.
CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }
CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }
CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxSetCurrent(CUcontext ctx) {
  SIM_ENTER();
  if (ctx == nullptr) {
    pop();
    return CUDA_SUCCESS;
  }
  Context* context = find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  thread_state.current = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  SIM_ENTER();
  SIM_REQUIRE(pctx != nullptr, CUDA_ERROR_INVALID_VALUE);
  *pctx = thread_state.current == nullptr ? nullptr : thread_state.current->handle;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  SIM_ENTER();
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(thread_state.current != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  *device = thread_state.current->device.ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  SIM_ENTER();
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_VALUE);
  const Context* context = ctx == nullptr ? thread_state.current : find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  *device = context->device.ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(flags != nullptr, CUDA_ERROR_INVALID_VALUE);
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(are_flags(flags), CUDA_ERROR_INVALID_VALUE);
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  SIM_ENTER();
  SIM_REQUIRE(ctxId != nullptr, CUDA_ERROR_INVALID_VALUE);
  const Context* context = ctx == nullptr ? thread_state.current : find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  *ctxId = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  SIM_ENTER();
  SIM_REQUIRE(version != nullptr, CUDA_ERROR_INVALID_VALUE);
  const Context* context = ctx == nullptr ? thread_state.current : find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  SIM_ENTER_CONTEXT(context);
  return synchronize(*context);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  SIM_ENTER();
  Context* context = ctx == nullptr ? thread_state.current : find_context(ctx);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return synchronize(*context);
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pvalue != nullptr && limit < CU_LIMIT_MAX, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(is_limit(limit), CUDA_ERROR_UNSUPPORTED_LIMIT);
  *pvalue = context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(limit < CU_LIMIT_MAX, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(is_limit(limit), CUDA_ERROR_UNSUPPORTED_LIMIT);
  const uint64_t before = bytes_beyond_default(limit, context->limits[limit]);
  const uint64_t after = bytes_beyond_default(limit, value);
  SIM_REQUIRE(after <= before || context->device.charge(after - before), CUDA_ERROR_OUT_OF_MEMORY);
  if (after < before) context->device.refund(before - after);
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pconfig != nullptr, CUDA_ERROR_INVALID_VALUE);
  *pconfig = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL, CUDA_ERROR_INVALID_VALUE);
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() {
  SIM_ENTER_CONTEXT(context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pctx != nullptr, CUDA_ERROR_INVALID_VALUE);
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  if (!primary_lives(*device)) SIM_TRY(Context::process_status());
  const Context* context = retain_primary(*device);
  SIM_REQUIRE(context != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  *pctx = context->handle;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  SIM_ENTER();
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  Context* last = nullptr;
  {
    const std::lock_guard lock(device->mutex);
    SIM_REQUIRE(device->primary.references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--device->primary.references == 0) last = device->primary.context;
  }
  if (last != nullptr) tear_down(*last);
  return CUDA_SUCCESS;
}

// The program keeps its references to the context; everything in the context is gone.
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  SIM_ENTER();
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  Context* context = nullptr;
  {
    const std::lock_guard lock(device->mutex);
    if (device->primary.references > 0) context = device->primary.context;
  }
  if (context == nullptr) return CUDA_SUCCESS;
  tear_down(*context);
  SIM_REQUIRE(device->open_context(), CUDA_ERROR_OUT_OF_MEMORY);
  context->revive();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  SIM_ENTER();
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  SIM_REQUIRE(are_flags(flags), CUDA_ERROR_INVALID_VALUE);
  const std::lock_guard lock(device->mutex);
  device->primary.flags = flags;
  if (device->primary.context != nullptr) device->primary.context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  SIM_ENTER();
  Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  SIM_REQUIRE(flags != nullptr && active != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::lock_guard lock(device->mutex);
  *flags = device->primary.flags;
  *active = device->primary.references > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }
CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  SIM_ENTER();
  SIM_REQUIRE(canAccessPeer != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr && find_device(peerDev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *canAccessPeer = dev != peerDev ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(Flags == 0, CUDA_ERROR_INVALID_VALUE);
  const Context* peer = find_context(peerContext);
  SIM_REQUIRE(peer != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  SIM_REQUIRE(&peer->device != &context->device, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  const std::lock_guard lock(context->device.mutex);
  const uint64_t bit = 1ull << peer->device.ordinal;
  SIM_REQUIRE((context->peers & bit) == 0, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  context->peers |= bit;
  return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  SIM_ENTER_CONTEXT(context);
  const Context* peer = find_context(peerContext);
  SIM_REQUIRE(peer != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const std::lock_guard lock(context->device.mutex);
  const uint64_t bit = 1ull << peer->device.ordinal;
  SIM_REQUIRE((context->peers & bit) != 0, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  context->peers &= ~bit;
  return CUDA_SUCCESS;
}

}  // extern "C"
