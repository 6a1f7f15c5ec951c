#include "preload/tracking/functions.h"

#include <cstring>
#include <new>

#include "preload/base/runtime.h"
#include "preload/driver/driver.h"
#include "preload/record/recorder.h"
#include "preload/trace/kernel_identity.h"
#include "preload/tracking/allocations.h"
#include "preload/tracking/handle_map.h"
#include "preload/tracking/opaque_kernels.h"

namespace reprise {
namespace {

constinit HandleMap functions;  // handle -> Function*
constinit HandleMap kinds;      // handle -> Kind
constinit HandleMap owners;     // CUmodule or CUlibrary -> Owner*
constinit HandleMap owner_of;   // handle -> its module or library
constinit HandleMap shapes;
constinit std::atomic<uint32_t> last_function{0};
pthread_mutex_t make_mutex = PTHREAD_MUTEX_INITIALIZER;

enum Kind : uint64_t { kFunction = 1, kKernel = 2 };
// A kernel has at most 32764 bytes of parameters; more than this many of them is a broken answer.
constexpr uint32_t kMaxParameters = 4096;
constexpr uint64_t kMaxShapes = 1 << 20;
constexpr uint64_t kNobody = ~uint64_t{0};  // stands for the owner that the driver does not tell

uint64_t key(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// cuKernel* wants a CUkernel, cuFunc* a CUfunction; a launch takes both.
CUresult parameter(CUfunction handle, Kind kind, size_t index, size_t* offset, size_t* size) {
  if (kind == kKernel) {
    return driver().cuKernelGetParamInfo(reinterpret_cast<CUkernel>(handle), index, offset, size);
  }
  return driver().cuFuncGetParamInfo(handle, index, offset, size);
}

const char* name_of(CUfunction handle, Kind kind) {
  const char* name = nullptr;
  const CUresult result = kind == kKernel ? driver().cuKernelGetName(&name, reinterpret_cast<CUkernel>(handle))
                                          : driver().cuFuncGetName(&name, handle);
  return result == CUDA_SUCCESS ? name : nullptr;
}

// A handle that no call announced: the kernel functions are asked first, a CUfunction is no CUkernel to them.
Kind kind_of(CUfunction handle) {
  const uint64_t known = kinds.find(key(handle));
  if (known != 0) return static_cast<Kind>(known);
  return name_of(handle, kKernel) != nullptr ? kKernel : kFunction;
}

void read_layout(CUfunction handle, Kind kind, Function* function) {
  trace::ParameterLayout list[kMaxParameters];
  uint32_t count = 0;
  for (;;) {
    size_t offset = 0;
    size_t size = 0;
    CUresult result = parameter(handle, kind, count, &offset, &size);
    if (result == CUDA_ERROR_FUNCTION_NOT_LOADED && driver().cuFuncLoad(handle) == CUDA_SUCCESS) {
      result = parameter(handle, kind, count, &offset, &size);
    }
    // The end of the list is an invalid index; any other answer says that the layout cannot be had. An end that is none
    // would leave parameters out of every copied launch, so it has to be said twice.
    if (result == CUDA_ERROR_INVALID_VALUE) result = parameter(handle, kind, count, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) break;
    if (result != CUDA_SUCCESS || count == kMaxParameters || offset + size > 64 * 1024) return;
    list[count++] = {static_cast<uint32_t>(offset), static_cast<uint32_t>(size)};
    const auto end = static_cast<uint32_t>(offset + size);
    if (end > function->parameter_bytes) function->parameter_bytes = end;
  }
  if (count > 0) {
    auto* parameters = new (std::nothrow) trace::ParameterLayout[count];
    if (parameters == nullptr) return;
    std::memcpy(parameters, list, count * sizeof *list);
    function->parameters = parameters;
  }
  function->parameter_count = count;
  function->layout_known = true;
}

Owner* owner_record(uint64_t owner) {
  if (owner == 0) owner = kNobody;
  if (const uint64_t known = owners.find(owner); known != 0) return reinterpret_cast<Owner*>(known);
  auto* fresh = new (std::nothrow) Owner;
  if (fresh == nullptr) return nullptr;
  fresh->variables.store(next_allocation_id(), std::memory_order_relaxed);
  owners.set(owner, key(fresh));
  return fresh;
}

uint64_t owner_handle(CUfunction handle, Kind kind) {
  if (const uint64_t noted = owner_of_handle(handle); noted != 0) return noted;
  if (kind == kKernel) {
    CUlibrary library = nullptr;
    return driver().cuKernelGetLibrary(&library, reinterpret_cast<CUkernel>(handle)) == CUDA_SUCCESS ? key(library) : 0;
  }
  CUmodule module = nullptr;
  return driver().cuFuncGetModule(&module, handle) == CUDA_SUCCESS ? key(module) : 0;
}

uint64_t identity_of(const Function& function) {
  const uint64_t code = function.owner != nullptr ? function.owner->code.load(std::memory_order_relaxed) : 0;
  if (code == 0 || !function.layout_known || *function.name == '\0') return 0;
  return trace::kernel_identity(code, function.name, {function.parameters, function.parameter_count});
}

Function* make_function(CUfunction handle) {
  auto* function = new (std::nothrow) Function;
  if (function == nullptr) return nullptr;
  const Kind kind = kind_of(handle);
  function->id = last_function.fetch_add(1, std::memory_order_relaxed) + 1;
  if (const char* name = name_of(handle, kind); name != nullptr) {
    if (const char* copy = strdup(name); copy != nullptr) function->name = copy;
  }
  function->name_hash = trace::hash_bytes(function->name, std::strlen(function->name));
  function->opaque = opaque_by_name(function->name);
  read_layout(handle, kind, function);
  if (function->layout_known) {
    function->structures = structures::recognize(function->name, function->parameters, function->parameter_count);
  }
  const uint64_t owner = owner_handle(handle, kind);
  function->owner = owner_record(owner);
  owner_of.set(key(handle), owner);
  function->identity = identity_of(*function);
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    recorder->function(function->id, function->name, function->parameters, function->parameter_count,
                       function->layout_known, function->identity);
  }
  return function;
}

// A handle value may come back for another kernel after its module was unloaded.
void insert_handle(const void* handle, Kind kind, uint64_t owner) {
  if (kinds.find(key(handle)) != kind) kinds.set(key(handle), kind);
  if (owner == 0 || owner_of.find(key(handle)) == owner) return;
  functions.erase(key(handle));  // what is known is another kernel's
  owner_of.set(key(handle), owner);
}

uint64_t output_id() {
  static constinit std::atomic<uint64_t> id{0};
  uint64_t none = 0;
  if (id.load() == 0) id.compare_exchange_strong(none, next_allocation_id());
  return id.load();
}

void forget_handles(uint64_t owner) {
  owners.erase(owner);
  owner_of.each([owner](uint64_t handle, uint64_t of) {
    if (of != owner) return;
    functions.erase(handle);
    kinds.erase(handle);
    owner_of.erase(handle);
  });
}

}  // namespace

const Function* find_function(CUfunction handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (const uint64_t known = functions.find(key(handle)); known != 0) return reinterpret_cast<Function*>(known);
  pthread_mutex_lock(&make_mutex);
  auto* function = reinterpret_cast<Function*>(functions.find(key(handle)));
  if (function == nullptr) {
    function = make_function(handle);
    if (function != nullptr) functions.set(key(handle), key(function));
  }
  pthread_mutex_unlock(&make_mutex);
  return function;
}

void insert_function_handle(CUfunction handle, uint64_t owner) noexcept { insert_handle(handle, kFunction, owner); }
void insert_kernel_handle(CUkernel handle, uint64_t owner) noexcept { insert_handle(handle, kKernel, owner); }

void record_image(uint64_t owner, const ImageTraits& traits) noexcept {
  // A handle may come back without an unload in between, after its context went away: so may those of its kernels.
  forget_handles(owner);
  Owner* record = owner_record(owner);
  if (record == nullptr) return;
  record->variables.store(traits.variables ? next_allocation_id() : 0, std::memory_order_relaxed);
  record->output.store(traits.prints ? output_id() : 0, std::memory_order_relaxed);
  record->code.store(traits.code, std::memory_order_relaxed);
}

void record_module_of(uint64_t library, uint64_t module) noexcept {
  if (Owner* record = owner_record(library); record != nullptr) owners.set(module, key(record));
}

uint64_t owner_of_handle(const void* handle) noexcept { return owner_of.find(key(handle)); }

bool insert_global(uint64_t owner, CUdeviceptr address, uint64_t size) noexcept {
  Owner* record = owner_record(owner);
  if (record == nullptr) return false;
  pthread_mutex_lock(&make_mutex);
  const uint32_t count = record->global_count.load(std::memory_order_relaxed);
  bool fresh = count < Owner::kMaxGlobals;
  for (uint32_t i = 0; i < count; ++i) fresh = fresh && record->globals[i].address != address;
  if (fresh) {
    record->globals[count] = {address, size};
    record->global_count.store(count + 1, std::memory_order_release);
  }
  pthread_mutex_unlock(&make_mutex);
  return fresh;
}

void forget_owner(uint64_t owner, void (*visit)(const Global& global)) noexcept {
  if (const uint64_t known = owners.find(owner); known != 0) {
    auto* record = reinterpret_cast<Owner*>(known);
    const uint32_t count = record->global_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) visit(record->globals[i]);
    owners.each([known](uint64_t handle, uint64_t of) {  // a library and its modules
      if (of == known) forget_handles(handle);
    });
  }
  forget_handles(owner);
}

bool shape_known(uint64_t shape) noexcept { return shapes.find(shape) != 0; }
void mark_shape_known(uint64_t shape) noexcept {
  if (shapes.find(shape) == 0 && shapes.used() < kMaxShapes) shapes.set(shape, 1);
}

}  // namespace reprise
