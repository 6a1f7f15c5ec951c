// What every entry point of our libcudart.so.13 stands on: the driver's functions, the calling thread's context and
// last error. The library is a plain client of the public driver API, so that runtime-API programs meet the simulated
// device, and whatever stands in front of it, as they would meet a GPU. Callers: the files of this folder.
#pragma once
#include "tools/device/base/cuda_api.h"
#undef __CUDA_API_VERSION_INTERNAL  // the runtime's own header knows the word, too
#include <cuda_runtime_api.h>

namespace reprise::sim::runtime {

// The driver's functions, each form under its own name. Members may be null: a driver that lacks the function.
struct Driver {
#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, ...) decltype(&::symbol) symbol;
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};

// The table, filled at the first call by libcuda.so.1 as dlopen() finds it. nullptr: there is none.
const Driver* driver();

// Keeps `error` for cudaGetLastError and returns it.
cudaError_t remember(cudaError_t error);
inline cudaError_t remember(CUresult result) { return remember(static_cast<cudaError_t>(result)); }
cudaError_t take_last_error();
cudaError_t peek_last_error();

// Loads and initialises the driver.
cudaError_t ensure_driver();
// ... and makes the primary context of the thread's device current, as the first call that needs one does. A context
// that the program made current by the driver API is used as it is.
cudaError_t ensure_context();

int current_device();
cudaError_t set_current_device(int device);
// The primary context of a device, which the runtime holds from the first request on.
cudaError_t primary_context(int device, CUcontext* context);
// Forgets that contexts were made current (after a reset).
cudaError_t reset_device();
// Gives the primary contexts back, at the end of the process.
void release_contexts();

template <typename... Parameters, typename... Arguments>
cudaError_t call_if(cudaError_t ready, CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
  if (ready != cudaSuccess) return remember(ready);
  const auto entry = driver()->*function;
  if (entry == nullptr) return remember(cudaErrorCallRequiresNewerDriver);
  return remember(entry(arguments...));
}

// Calls a driver function in the thread's context and keeps its error.
template <typename... Parameters, typename... Arguments>
cudaError_t call(CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
  return call_if(ensure_context(), function, arguments...);
}
// The same for functions that need no context.
template <typename... Parameters, typename... Arguments>
cudaError_t call_without_context(CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
  return call_if(ensure_driver(), function, arguments...);
}

inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Programs built for per-thread default streams call entry points of their own: stream 0 means another one there.
inline cudaStream_t per_thread(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

// A kernel or a variable of the program, by its address on the host. nullptr when the program has none there; loads the
// image that holds it. Errors are kept as the thread's last one. A kernel's handle names it, too.
CUkernel find_kernel(const void* host_function);
cudaError_t find_variable(const void* host_variable, CUdeviceptr* address, size_t* bytes);
// The place of `offset` in a variable, where `bytes` fit behind it.
cudaError_t symbol_place(const void* symbol, size_t bytes, size_t offset, void** place);
// The other way round, where the program has no function of its own for it: the handle.
const void* host_function_of(CUkernel kernel);
// The program has been given these handles.
void keep_kernels(const CUkernel* kernels, unsigned count);
// The name under which a kernel was registered, or nullptr. Loads nothing.
const char* kernel_name(const void* host_function);

}  // namespace reprise::sim::runtime
