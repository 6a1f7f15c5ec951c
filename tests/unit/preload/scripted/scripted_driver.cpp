#include "tests/unit/preload/scripted/scripted_driver.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Entry {
  ScriptedCall call{};
  int result = 0;
  void (*reenter)() = nullptr;
};

struct State {
  std::mutex mutex;
  std::map<std::string, Entry> entries;
  std::vector<ScriptedParameter> layout;
  bool layout_known = true;
  int64_t denied_parameter = -1;
  bool unloaded = false;
  std::string procaddress;
  std::string newer_procaddress;
  uint64_t next_address = 0x700000000000;
  uint64_t next_handle = 0x1000;
  int capture_status = 0;
  int node_type = -1;
  uint64_t node_address = 0;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

int called(const char* symbol, std::initializer_list<uint64_t> integers, double real) {
  void (*reenter)() = nullptr;
  int result = 0;
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    Entry& entry = state().entries[symbol];
    ++entry.call.count;
    size_t index = 0;
    for (const uint64_t integer : integers) entry.call.integers[index++] = integer;
    entry.call.real = real;
    reenter = entry.reenter;
    result = entry.result;
  }
  if (reenter != nullptr) reenter();
  return result;
}

template <typename T>
void give(uint64_t pointer, T value) {
  if (pointer != 0) std::memcpy(reinterpret_cast<void*>(pointer), &value, sizeof value);
}

}  // namespace

#define PARAMETERS                                                                                             \
  uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, double real, uint64_t g, uint64_t h, \
      uint64_t i, uint64_t j, uint64_t k, uint64_t l
#define ARGUMENTS {a, b, c, d, e, f, g, h, i, j, k, l}, real

// What a function does besides recording its arguments, when it answers success.
namespace {
void effect(const std::string& symbol, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  State& s = state();
  if (symbol.rfind("cuMemAlloc", 0) == 0 || symbol == "cuMemHostAlloc") {
    const bool pitched = symbol.rfind("cuMemAllocPitch", 0) == 0;
    const uint64_t bytes = pitched ? (c + 511) / 512 * 512 * d : b;
    give(a, s.next_address);
    if (pitched) give(b, (c + 511) / 512 * 512);
    s.next_address += (bytes / 0x1000 + 2) * 0x1000;
  } else if (symbol == "cuFuncLoad") {
    s.unloaded = false;
  } else if (symbol == "cuCtxGetCurrent") {
    give<uint64_t>(a, 0xc0de);
  } else if (symbol == "cuDriverGetVersion") {
    give<int>(a, 13020);
  } else if (symbol == "cuCtxGetDevice") {
    give<int>(a, 0);
  } else if (symbol == "cuStreamCreate" || symbol == "cuGraphInstantiateWithFlags") {
    give(a, s.next_handle += 0x10);
  } else if (symbol == "cuStreamIsCapturing") {
    give<int>(b, s.capture_status);
  } else if (symbol == "cuGraphGetNodes") {
    if (b != 0 && s.node_type >= 0) give<uint64_t>(b, 0xde);
    give<uint64_t>(c, s.node_type >= 0 ? 1 : 0);
  } else if (symbol == "cuGraphNodeGetType") {
    give<int>(b, s.node_type);
  } else if (symbol == "cuGraphMemsetNodeGetParams") {
    give(b, s.node_address);
  } else if (symbol == "cuKernelGetName" || symbol == "cuFuncGetName") {
    give<const char*>(a, "a_kernel");
  } else if (symbol == "cuFuncGetModule" || symbol == "cuKernelGetLibrary") {
    give<uint64_t>(a, 0xabc0);
  } else if (symbol.rfind("cuModuleLoad", 0) == 0) {
    give<uint64_t>(a, 0xabc0);
  } else if (symbol.rfind("cuLibraryLoad", 0) == 0) {
    give<uint64_t>(a, 0xabe0);
  } else if (symbol == "cuLibraryGetModule") {
    give<uint64_t>(a, 0xabd0);
  } else if (symbol == "cuModuleGetFunction" || symbol == "cuLibraryGetKernel" || symbol == "cuKernelGetFunction") {
    give(a, s.next_handle += 0x10);
  } else if (symbol == "cuModuleGetGlobal_v2") {
    give<uint64_t>(a, 0x600000);
    give<uint64_t>(b, 64);
  } else if (symbol.rfind("cuTensorMap", 0) == 0) {
    std::memset(reinterpret_cast<void*>(a), 0x5a, 128);
    // Opaque as the real ones: the address does not stand in it in the clear.
    give<uint64_t>(a + 8, ~d);
  }
}
}  // namespace

#define REPRISE_ROW(symbol, ...)                          \
  EXPORTED __attribute__((weak)) int symbol(PARAMETERS) { \
    const int result = called(#symbol, ARGUMENTS);        \
    if (result == 0) effect(#symbol, a, b, c, d);         \
    return result;                                        \
  }
#define cuGetProcAddress_v2 unused_cuGetProcAddress_v2
#define cuGetProcAddress unused_cuGetProcAddress
#define cuFuncGetParamInfo unused_cuFuncGetParamInfo
#define cuKernelGetParamInfo unused_cuKernelGetParamInfo
#define cuPointerGetAttribute unused_cuPointerGetAttribute
// A driver that is older than the table: the thunk of this row has nothing to go to.
#define cuDeviceGetLuid unused_cuDeviceGetLuid
#include "preload/exports/hooks.def"
#undef cuGetProcAddress_v2
#undef cuGetProcAddress
#undef cuFuncGetParamInfo
#undef cuKernelGetParamInfo
#undef cuPointerGetAttribute
#undef cuDeviceGetLuid
#undef REPRISE_ROW

namespace {
int look_up(void** function, int version) {
  const std::string& newer = state().newer_procaddress;
  const std::string& symbol = version > 13000 && !newer.empty() ? newer : state().procaddress;
  if (function != nullptr) *function = symbol.empty() ? nullptr : dlsym(RTLD_DEFAULT, symbol.c_str());
  Dl_info own;
  if (function != nullptr && !symbol.empty() && dladdr(reinterpret_cast<void*>(&look_up), &own) != 0) {
    void* self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = dlsym(self, symbol.c_str());
    dlclose(self);
  }
  return 0;
}
int parameter(uint64_t index, uint64_t offset, uint64_t bytes) {
  if (!state().layout_known) return 801;  // CUDA_ERROR_NOT_SUPPORTED
  if (state().unloaded) return 913;       // CUDA_ERROR_FUNCTION_NOT_LOADED
  if (static_cast<int64_t>(index) == state().denied_parameter) return state().denied_parameter = -1, 1;
  if (index >= state().layout.size()) return 1;
  give(offset, state().layout[index].offset);
  give(bytes, state().layout[index].bytes);
  return 0;
}
}  // namespace

EXPORTED int cuGetProcAddress_v2(const char*, void** function, int version, uint64_t, int* status) {
  const int result = called("cuGetProcAddress_v2", {}, 0);
  if (status != nullptr) *status = 0;
  return result != 0 ? result : look_up(function, version);
}
EXPORTED int cuGetProcAddress(const char*, void** function, int version, uint64_t) {
  return look_up(function, version);
}
EXPORTED int cuFuncGetParamInfo(void*, uint64_t index, uint64_t offset, uint64_t bytes) {
  return parameter(index, offset, bytes);
}
EXPORTED int cuKernelGetParamInfo(void*, uint64_t index, uint64_t offset, uint64_t bytes) {
  return parameter(index, offset, bytes);
}
// This driver knows no pointer, so all host memory is pageable.
EXPORTED int cuPointerGetAttribute(void*, int, uint64_t) {
  called("cuPointerGetAttribute", {}, 0);
  return 1;
}

EXPORTED void scripted_reset() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.entries.clear();
  s.layout.clear();
  s.layout_known = true;
  s.denied_parameter = -1;
  s.unloaded = false;
  s.procaddress.clear();
  s.newer_procaddress.clear();
  s.capture_status = 0;
  s.node_type = -1;
}
EXPORTED ScriptedCall scripted_call(const char* symbol) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().entries[symbol].call;
}
EXPORTED void scripted_answer(const char* symbol, int result) { state().entries[symbol].result = result; }
EXPORTED void scripted_layout(const ScriptedParameter* parameters, int count) {
  state().layout_known = count >= 0;
  state().layout.assign(parameters, parameters + (count > 0 ? count : 0));
}
EXPORTED void scripted_deny_parameter(int64_t index) { state().denied_parameter = index; }
EXPORTED void scripted_procaddress(const char* symbol) { state().procaddress = symbol != nullptr ? symbol : ""; }
EXPORTED void scripted_unloaded() { state().unloaded = true; }
EXPORTED void scripted_newer_procaddress(const char* symbol) { state().newer_procaddress = symbol; }
EXPORTED void scripted_reenter(const char* symbol, void (*callback)()) { state().entries[symbol].reenter = callback; }
EXPORTED void scripted_capturing(int status) { state().capture_status = status; }
EXPORTED void scripted_node(int type, uint64_t address) {
  state().node_type = type;
  state().node_address = address;
}
