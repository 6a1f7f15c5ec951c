#include "preload/frameworks/torch_allocator.h"

#include <dlfcn.h>
#include <link.h>
#include <strings.h>
#include <unwind.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "preload/base/causes.h"
#include "preload/base/config.h"
#include "preload/base/runtime.h"

namespace reprise {
namespace {

constexpr char kBackend[] = "backend:cudaMallocAsync";
constexpr char kAllocator[] = "libc10_cuda.so";  // PyTorch's library that has its allocators
constexpr int kMostFrames = 24;
constexpr uint32_t kMostLooks = 1000;

enum class Asked : uint8_t { nobody, user, launcher };

Asked who_asked() noexcept {
  const char* const backend = config().torch_backend;
  if (backend == nullptr) return Asked::nobody;
  return std::strcmp(backend, "launcher") == 0 ? Asked::launcher : Asked::user;
}

bool is_called(const char* path, const char* name) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : path, name, std::strlen(name)) == 0;
}

// Who has called the driver: the first frame outside of this library and of CUDA's runtime, which may be a library, or
// a part of its caller.
struct CallerWalk {
  const void* own = nullptr;  // where this library begins
  int frames = 0;
  bool by_torch = false;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<CallerWalk*>(argument);
  if (++walk.frames > kMostFrames) return _URC_END_OF_STACK;
  Dl_info info{};
  // A return address may lie behind the end of its function.
  const uint64_t at = _Unwind_GetIP(context) - 1;
  if (::dladdr(reinterpret_cast<void*>(at), &info) == 0 || info.dli_fname == nullptr) return _URC_END_OF_STACK;
  if (info.dli_fbase == walk.own || is_called(info.dli_fname, "libcudart")) return _URC_NO_REASON;
  walk.by_torch = is_called(info.dli_fname, kAllocator);
  return _URC_END_OF_STACK;
}

bool torch_calls() noexcept {
  CallerWalk walk;
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&torch_calls), &own) != 0) walk.own = own.dli_fbase;
  _Unwind_Backtrace(look_at_frame, &walk);
  return walk.by_torch;
}

bool is_loaded(const char* library) noexcept {
  struct LibrarySearch {
    const char* name;
    bool found;
  } search{library, false};
  const auto look = [](dl_phdr_info* info, size_t, void* argument) {
    auto* const wanted = static_cast<LibrarySearch*>(argument);
    wanted->found = info->dlpi_name != nullptr && is_called(info->dlpi_name, wanted->name);
    return wanted->found ? 1 : 0;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

bool has_backend(const char* setting) noexcept {
  for (const char* at = setting; *at != '\0'; ++at) {
    if (strncasecmp(at, kBackend, sizeof kBackend - 1) == 0) return true;
  }
  return false;
}

std::atomic<uint32_t> looks{0};
std::atomic<bool> own_allocator{false};  // of PyTorch, was seen

void say_hidden() noexcept {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* const setting = std::getenv(name);
    if (setting == nullptr || has_backend(setting)) continue;
    return say<Cause::torch_allocator_set>(name, setting, kBackend);
  }
  say<Cause::torch_allocator_chosen>(kBackend);
}

}  // namespace

void look_who_allocates() noexcept {
  if (who_asked() == Asked::nobody || looks.load(std::memory_order_relaxed) >= kMostLooks) return;
  if (looks.fetch_add(1, std::memory_order_relaxed) >= kMostLooks || !torch_calls()) return;
  looks.store(kMostLooks, std::memory_order_relaxed);
  if (!own_allocator.exchange(true)) say_hidden();
}

void say_what_backend_lacks() noexcept {
  if (who_asked() != Asked::launcher || own_allocator.load() || runtime().exit_code <= 0) return;
  if (!is_loaded(kAllocator)) return;
  say<Cause::torch_backend_lacks>(runtime().exit_code, kBackend);
}

}  // namespace reprise
