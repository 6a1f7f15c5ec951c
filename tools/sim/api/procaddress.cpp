// cuGetProcAddress, both forms: a base name, a version and a flag pick one of the exported functions.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/sim/base/cuda_api.h"
#include "tools/sim/streams/enter.h"

using namespace reprise::sim;

namespace {

struct Entry {
  const char* base;
  int version;
  void* function;
  int per_thread_version;
  void* per_thread_function;
};

template <typename Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

const Entry kEntries[] = {
#define REPRISE_SIM_ENTRY(base, version, symbol) {#base, version, pointer(&symbol), 0, nullptr},
#define REPRISE_SIM_ENTRY_PAIR(base, version, symbol, own_version, own_symbol) \
  {#base, version, pointer(&symbol), own_version, pointer(&own_symbol)},
#include "tools/sim/api/procaddress.def"
#undef REPRISE_SIM_ENTRY
#undef REPRISE_SIM_ENTRY_PAIR
};

constexpr int kVersion = 13000;

// The newest form that `version` knows. The rows of a name stand together.
void* find(const char* name, int version, bool per_thread, bool* known) {
  void* legacy = nullptr;
  void* own = nullptr;
  const auto first = std::find_if(std::begin(kEntries), std::end(kEntries),
                                  [&](const Entry& entry) { return std::strcmp(entry.base, name) == 0; });
  *known = first != std::end(kEntries);
  for (const Entry* entry = first; entry != std::end(kEntries) && std::strcmp(entry->base, name) == 0; ++entry) {
    if (entry->version <= version) legacy = entry->function;
    if (entry->per_thread_function != nullptr && entry->per_thread_version <= version) {
      own = entry->per_thread_function;
    }
  }
  return per_thread && own != nullptr ? own : legacy;
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  if (const CUresult fault = injected_fault("cuGetProcAddress"); fault != CUDA_SUCCESS) return fault;
  constexpr cuuint64_t kFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  SIM_REQUIRE(symbol != nullptr && pfn != nullptr && cudaVersion <= kVersion, CUDA_ERROR_INVALID_VALUE);
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
