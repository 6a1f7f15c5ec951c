// cuGetProcAddress, both forms: a base name, a version and a flag pick one of the functions of hooks.def.
#include <cstring>

#include "preload/exports/rows.h"
#include "tools/device/api/newer.h"
#include "tools/device/base/cuda_api.h"
#include "tools/device/base/settings.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

struct ExportedForm {
  const char* base;
  int version;
  bool per_thread;
  void* function;
};

template <typename Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

const ExportedForm kForms[] = {
#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  {#base, version, reprise::per_thread_symbol(#symbol), pointer(&symbol)},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
#define REPRISE_NEWER(base, version, function, per_thread) \
  {#base, version, false, pointer(&function)}, {#base, version, true, pointer(&per_thread)},
#include "tools/device/api/newer.def"
#undef REPRISE_NEWER
};

int driver_version() { return static_cast<int>(settings().version); }

// The newest form that `version` knows; of the per-thread forms where these are asked for and there is one.
void* find(const char* name, int version, bool per_thread, bool* known) {
  const ExportedForm* newest[2] = {};  // legacy, per thread
  *known = false;
  for (const ExportedForm& form : kForms) {
    if (form.version > driver_version() || std::strcmp(form.base, name) != 0) continue;
    *known = true;
    const ExportedForm*& best = newest[form.per_thread ? 1 : 0];
    if (form.version <= version && (best == nullptr || best->version <= form.version)) best = &form;
  }
  const ExportedForm* found = per_thread && newest[1] != nullptr ? newest[1] : newest[0];
  return found != nullptr ? found->function : nullptr;
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  const CUresult fault = injected_fault("cuGetProcAddress", __builtin_return_address(0));
  SIM_REQUIRE(fault == CUDA_SUCCESS, fault);
  constexpr cuuint64_t kFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  SIM_REQUIRE(symbol != nullptr && pfn != nullptr && cudaVersion <= driver_version(), CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE((flags & ~kFlags) == 0 && flags != kFlags, CUDA_ERROR_INVALID_VALUE);
  bool known = false;
  *pfn = find(symbol, cudaVersion, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
  if (symbolStatus != nullptr) {
    *symbolStatus = *pfn != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                    : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

// The first form reports an unknown name by its result.
CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  SIM_TRY(cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr));
  return *pfn == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // extern "C"
