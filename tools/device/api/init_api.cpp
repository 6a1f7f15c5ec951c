// cuInit, versions, errors, logs, and what a fork does.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tools/device/base/settings.h"
#include "tools/device/base/trap.h"
#include "tools/device/engines/device.h"
#include "tools/device/streams/enter.h"
#include "tools/device/twins/executor.h"

using namespace reprise::sim;

namespace {

// Once: programs go on asking.
void name_foreign_runtime(const void* caller) {
  static std::atomic<bool> told{false};
  Dl_info where;
  if (told.exchange(true) || dladdr(caller, &where) == 0) return;
  std::fprintf(
      stderr,
      "reprise: simulated device: %s is a CUDA runtime of NVIDIA's or contains one, and cannot run here; programs "
      "can that are built with `nvcc -cudart shared` of CUDA 13, and a PyTorch for CUDA 13\n",
      where.dli_fname);
}

void after_fork_in_child() { driver_state.fetch_or(kForked); }

// cuda.h: CUDA_ERROR_DEINITIALIZED says that the driver is in the process of shutting down. It is from its exit handler
// on, which is registered by cuInit: who registered one before calls a driver that is gone.
void shut_down() { driver_state.fetch_or(kShutDown); }

void initialize() {
  settings();
  create_devices();
  install_trap();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  (void)std::atexit(shut_down);
  const char* problem = nullptr;
  load_twins(&problem);
  if (problem != nullptr) std::fprintf(stderr, "reprise: simulated device: %s\n", problem);
  driver_state.fetch_and(~uint32_t{kNotInitialized}, std::memory_order_release);
}

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define REPRISE_SIM_ERROR(code, text) {code, #code, text},
#include "tools/device/api/errors.def"
#undef REPRISE_SIM_ERROR
};

const ErrorText* find_error(CUresult code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int Flags) {
  if (const CUresult fault = injected_fault(__func__, __builtin_return_address(0)); fault != CUDA_SUCCESS) return fault;
  if ((driver_state.load() & kForked) != 0) return CUDA_ERROR_NOT_INITIALIZED;
  SIM_REQUIRE(Flags == 0, CUDA_ERROR_INVALID_VALUE);
  static std::once_flag& once = *new std::once_flag;
  std::call_once(once, initialize);
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (const CUresult fault = injected_fault(__func__, __builtin_return_address(0)); fault != CUDA_SUCCESS) return fault;
  SIM_REQUIRE(driverVersion != nullptr, CUDA_ERROR_INVALID_VALUE);
  *driverVersion = static_cast<int>(settings().version);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  SIM_REQUIRE(pStr != nullptr, CUDA_ERROR_INVALID_VALUE);
  const ErrorText* found = find_error(error);
  *pStr = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  SIM_REQUIRE(pStr != nullptr, CUDA_ERROR_INVALID_VALUE);
  const ErrorText* found = find_error(error);
  *pStr = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The private tables are not imitated: every one of them is answered with "not found", and whoever asked, which is one
// of NVIDIA's runtimes, fails at its first call. Ours is of another version, or was not looked for.
CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (const CUresult fault = injected_fault(__func__, __builtin_return_address(0)); fault != CUDA_SUCCESS) return fault;
  SIM_REQUIRE(ppExportTable != nullptr && pExportTableId != nullptr, CUDA_ERROR_INVALID_VALUE);
  name_foreign_runtime(__builtin_return_address(0));
  return CUDA_ERROR_NOT_FOUND;
}

// This driver never logs, so callbacks are never called. A handle is one more than those that were handed out before.
CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void*, CUlogsCallbackHandle* callback_out) {
  SIM_ENTER();
  SIM_REQUIRE(callbackFunc != nullptr, CUDA_ERROR_INVALID_VALUE);
  static std::atomic<uintptr_t> last{0};
  const uintptr_t handle = ++last;
  if (callback_out != nullptr) *callback_out = reinterpret_cast<CUlogsCallbackHandle>(handle);
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  SIM_ENTER();
  return callback == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuProfilerStart() {
  SIM_ENTER();
  return CUDA_SUCCESS;
}

CUresult cuProfilerStop() {
  SIM_ENTER();
  return CUDA_SUCCESS;
}

}  // extern "C"
