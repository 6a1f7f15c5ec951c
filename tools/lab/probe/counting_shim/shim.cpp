// The counting shim: a library that calls itself libcuda.so.1 and passes every call on. Preloaded, it gets the calls of
// every user of the driver; it counts launches and notes what it would need to know about them (what they do about
// memory is in memory_calls.cpp). Sections 1 and 6 of the probe read what it writes.
#define __CUDA_API_VERSION_INTERNAL  // cuda.h then declares every version under its own name
#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "preload/exports/rows.h"
#include "tools/lab/probe/counting_shim/counts.h"
#include "tools/lab/probe/counting_shim/cupti_records.h"
#include "tools/lab/probe/counting_shim/hook.h"

namespace {

using namespace reprise::count;

// A launch into a stream that is being captured makes a graph node and runs nothing.
bool capturing(CUstream stream, bool per_thread) noexcept {
  using Query = CUresult (*)(CUstream, CUstreamCaptureStatus*);
  static const auto legacy = real<Query>("cuStreamIsCapturing");
  static const auto thread = real<Query>("cuStreamIsCapturing_ptsz");
  const Query query = per_thread ? thread : legacy;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return query && query(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult counted(CUresult result, const char* entry, CUfunction function, void** parameters, void** extra,
                 bool captured) {
  if (result == CUDA_SUCCESS) count_launch(entry, function, parameters, extra, captured);
  return result;
}

void at_exit() {
  if (const auto synchronize = real<CUresult (*)()>("cuCtxSynchronize")) synchronize();
  finish_records();
  write_counts();
}

// The row of the hook that stands for the driver's function of this name and version, or nullptr: it has none.
const Row* find_hook(const char* base, int version, bool per_thread) {
  const Row* best[2] = {};  // the legacy form, the per-thread form: the newest that the caller knows
  for (const Row* row = reprise_count_rows; row != reprise_count_rows_end; ++row) {
    if (row->ours == row->thunk || std::strcmp(row->base, base) != 0 || row->version > version) continue;
    const Row*& newest = best[reprise::per_thread_symbol(row->symbol)];
    if (newest == nullptr || newest->version <= row->version) newest = row;
  }
  return per_thread && best[1] != nullptr ? best[1] : best[0];
}

void replace(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (!symbol || !function || !*function) return;
  if (const Row* hook = find_hook(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
    *function = hook->ours;
}

}  // namespace

EXPORTED CUresult CUDAAPI cuInit(unsigned flags) {
  REAL(cuInit);
  const CUresult result = real_function(flags);
  static std::atomic<bool> started{false};
  if (result == CUDA_SUCCESS && !started.exchange(true)) {
    std::atexit(at_exit);
    start_records();
  }
  return result;
}

EXPORTED CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  REAL(cuGetProcAddress);
  const CUresult result = real_function(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}

EXPORTED CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                              CUdriverProcAddressQueryResult* status) {
  REAL(cuGetProcAddress_v2);
  const CUresult result = real_function(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}

EXPORTED CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  REAL(cuLibraryGetKernel);
  const CUresult result = real_function(kernel, library, name);
  if (result == CUDA_SUCCESS) count_kernel(*kernel);
  return result;
}

EXPORTED CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  REAL(cuLibraryEnumerateKernels);
  const CUresult result = real_function(kernels, count, library);
  for (unsigned i = 0; result == CUDA_SUCCESS && i < count; ++i) count_kernel(kernels[i]);
  return result;
}

EXPORTED CUresult CUDAAPI cuLaunch(CUfunction f) {
  REAL(cuLaunch);
  return counted(real_function(f), "cuLaunch", f, nullptr, nullptr, false);
}
EXPORTED CUresult CUDAAPI cuLaunchGrid(CUfunction f, int width, int height) {
  REAL(cuLaunchGrid);
  return counted(real_function(f, width, height), "cuLaunchGrid", f, nullptr, nullptr, false);
}
EXPORTED CUresult CUDAAPI cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  REAL(cuLaunchGridAsync);
  const bool captured = capturing(stream, false);
  return counted(real_function(f, width, height, stream), "cuLaunchGridAsync", f, nullptr, nullptr, captured);
}

#define LAUNCH_KERNEL(name, per_thread)                                                                            \
  EXPORTED CUresult CUDAAPI name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
                                 unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) { \
    REAL(name);                                                                                                    \
    const bool captured = capturing(stream, per_thread);                                                           \
    const CUresult result = real_function(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);           \
    return counted(result, #name, f, parameters, extra, captured);                                                 \
  }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_KERNEL_EX(name, per_thread)                                                                      \
  EXPORTED CUresult CUDAAPI name(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) { \
    REAL(name);                                                                                                 \
    const bool captured = config && capturing(config->hStream, per_thread);                                     \
    return counted(real_function(config, f, parameters, extra), #name, f, parameters, extra, captured);         \
  }
LAUNCH_KERNEL_EX(cuLaunchKernelEx, false)
LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

#define LAUNCH_COOPERATIVE(name, per_thread)                                                                    \
  EXPORTED CUresult CUDAAPI name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                                 unsigned bz, unsigned shared, CUstream stream, void** parameters) {            \
    REAL(name);                                                                                                 \
    const bool captured = capturing(stream, per_thread);                                                        \
    const CUresult result = real_function(f, gx, gy, gz, bx, by, bz, shared, stream, parameters);               \
    return counted(result, #name, f, parameters, nullptr, captured);                                            \
  }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

EXPORTED CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count,
                                                               unsigned flags) {
  REAL(cuLaunchCooperativeKernelMultiDevice);
  const CUresult result = real_function(launches, count, flags);
  for (unsigned i = 0; i < count; ++i) {
    counted(result, "cuLaunchCooperativeKernelMultiDevice", launches[i].function, launches[i].kernelParams, nullptr,
            false);
  }
  return result;
}

#define INSTANTIATE_WITH_LOG(name)                                                                                     \
  EXPORTED CUresult CUDAAPI name(CUgraphExec* executable, CUgraph graph, CUgraphNode* node, char* log, size_t bytes) { \
    REAL(name);                                                                                                        \
    const CUresult result = real_function(executable, graph, node, log, bytes);                                        \
    if (result == CUDA_SUCCESS) count_graph(*executable, graph);                                                       \
    return result;                                                                                                     \
  }
INSTANTIATE_WITH_LOG(cuGraphInstantiate)
INSTANTIATE_WITH_LOG(cuGraphInstantiate_v2)

EXPORTED CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                      unsigned long long flags) {
  REAL(cuGraphInstantiateWithFlags);
  const CUresult result = real_function(executable, graph, flags);
  if (result == CUDA_SUCCESS) count_graph(*executable, graph);
  return result;
}

#define INSTANTIATE_WITH_PARAMS(name)                                                                                 \
  EXPORTED CUresult CUDAAPI name(CUgraphExec* executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) { \
    REAL(name);                                                                                                       \
    const CUresult result = real_function(executable, graph, parameters);                                             \
    if (result == CUDA_SUCCESS) count_graph(*executable, graph);                                                      \
    return result;                                                                                                    \
  }
INSTANTIATE_WITH_PARAMS(cuGraphInstantiateWithParams)
INSTANTIATE_WITH_PARAMS(cuGraphInstantiateWithParams_ptsz)

#define GRAPH_LAUNCH(name)                                                  \
  EXPORTED CUresult CUDAAPI name(CUgraphExec executable, CUstream stream) { \
    REAL(name);                                                             \
    const CUresult result = real_function(executable, stream);              \
    if (result == CUDA_SUCCESS) count_graph_launch(executable);             \
    return result;                                                          \
  }
GRAPH_LAUNCH(cuGraphLaunch)
GRAPH_LAUNCH(cuGraphLaunch_ptsz)
