#include "preload/record/callsite.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "preload/driver/resolve.h"
#include "preload/record/build_id.h"
#include "preload/record/recorder.h"
#include "preload/trace/signature.h"

// Where this library lies in memory; the linker defines both.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace reprise {
namespace {

constexpr uint32_t kTextBytes = 16384;

template <typename T>
T* map_array(size_t count) noexcept {
  void* memory =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

// The compiler's unwinder, for machines without libunwind.
int walk_with_libgcc(void** frames, int capacity) {
  struct WalkProgress {
    void** frames;
    int count;
    int capacity;
  } progress{frames, 0, capacity};
  const auto step = [](_Unwind_Context* context, void* argument) {
    auto* at = static_cast<WalkProgress*>(argument);
    if (at->count == at->capacity) return _URC_END_OF_STACK;
    at->frames[at->count++] = reinterpret_cast<void*>(_Unwind_GetIP(context));
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(step, &progress);
  return progress.count;
}

// Opened here and privately: as a dependency of a preloaded library its exception entry points (_Unwind_*) would
// replace the program's own. Not under the thread sanitizer, whose thread state is gone when libunwind's thread exit
// code runs.
auto libunwind_walk() noexcept -> int (*)(void**, int) {
#ifdef __SANITIZE_THREAD__
  return nullptr;
#else
  return reinterpret_cast<int (*)(void**, int)>(library_symbol(load_library("libunwind.so.8"), "unw_backtrace"));
#endif
}

}  // namespace

CallSites* CallSites::create(bool hide_own) noexcept {
  auto* sites = new (std::nothrow) CallSites;
  if (sites == nullptr) return nullptr;
  sites->known_ = map_array<KnownPair>(kKnown);
  sites->seen_ = map_array<Seen>(kSeen);
  sites->stacks_ = map_array<Stack>(kMaxStacks);
  sites->text_ = map_array<char>(kTextBytes);
  if (sites->known_ == nullptr || sites->seen_ == nullptr || sites->stacks_ == nullptr || sites->text_ == nullptr) {
    return nullptr;
  }
  if (hide_own) {
    sites->own_begin_ = reinterpret_cast<uint64_t>(__ehdr_start);
    sites->own_end_ = reinterpret_cast<uint64_t>(_end);
  }
  sites->walk_ = libunwind_walk();
  sites->unwinder_ = "libunwind";
  if (sites->walk_ == nullptr) {
    sites->walk_ = walk_with_libgcc;
    sites->unwinder_ = "libgcc";
  }
  return sites;
}

CallSites::KnownPair* CallSites::find_known(uint64_t key) noexcept {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    KnownPair& slot = known_[((key >> 20) + probe) & (kKnown - 1)];
    uint64_t found = slot.key.load(std::memory_order_relaxed);
    if (found == 0 && slot.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) return &slot;
    if (found == key) return &slot;
  }
  return nullptr;
}

uint32_t CallSites::id(uint64_t key, const void* frame) noexcept {
  KnownPair* known = find_known(trace::hash_mix(key, reinterpret_cast<uint64_t>(frame)) | 1);
  if (known == nullptr) return 0;
  // Not one atomic step: a lost count only moves the next walk.
  const uint32_t count = known->count.load(std::memory_order_relaxed) + 1;
  known->count.store(count, std::memory_order_relaxed);
  // A power of two? By std::has_single_bit a function of the compiler's would count the bits.
  if ((count & (count - 1)) != 0) return known->site.load(std::memory_order_relaxed);
  const uint32_t site = walk();
  known->site.store(site, std::memory_order_relaxed);
  return site;
}

uint32_t CallSites::walk() noexcept {
  void* frames[kMaxFrames];
  const int found = walk_(frames, static_cast<int>(kMaxFrames));
  const uint32_t count = found > 0 ? static_cast<uint32_t>(found) : 0;
  uint32_t first = 0;
  while (first < count && reinterpret_cast<uint64_t>(frames[first]) - own_begin_ < own_end_ - own_begin_) ++first;
  return first < count ? id_of(frames + first, count - first) : 0;
}

uint32_t CallSites::id_of(void* const* frames, uint32_t count) noexcept {
  const uint64_t hash = trace::hash_bytes(frames, count * sizeof(void*)) | 1;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Seen& slot = seen_[((hash >> 20) + probe) & (kSeen - 1)];
    uint64_t found = slot.hash.load(std::memory_order_relaxed);
    // 0 while another thread is still storing this very stack: this one call then has no site.
    if (found == hash) return slot.site.load(std::memory_order_acquire);
    if (found != 0) continue;
    if (!slot.hash.compare_exchange_strong(found, hash, std::memory_order_relaxed)) {
      if (found == hash) return slot.site.load(std::memory_order_acquire);
      continue;
    }
    const uint32_t index = stack_count_.fetch_add(1, std::memory_order_relaxed);
    if (index >= kMaxStacks) {
      stack_count_.store(kMaxStacks, std::memory_order_relaxed);
      return 0;
    }
    Stack& stack = stacks_[index];
    std::memcpy(stack.frames, frames, count * sizeof(void*));
    stack.count = count;
    stack.ready.store(1, std::memory_order_release);
    slot.site.store(index + 1, std::memory_order_release);
    return index + 1;
  }
  return 0;
}

uint32_t CallSites::describe(const Stack& stack) noexcept {
  uint32_t used = 0;
  for (uint32_t i = 0; i < stack.count && used + 512 < kTextBytes; ++i) {
    const auto address = reinterpret_cast<uint64_t>(stack.frames[i]);
    Dl_info info{};
    // The byte before: a return address may lie behind the end of a function that does not return.
    const bool known = ::dladdr(reinterpret_cast<void*>(address - 1), &info) != 0 && info.dli_fname != nullptr;
    const char* slash = known ? std::strrchr(info.dli_fname, '/') : nullptr;
    const char* module = !known ? "?" : slash != nullptr ? slash + 1 : info.dli_fname;
    char* to = text_ + used;
    int size = 0;
    if (known && info.dli_sname != nullptr) {
      size = std::snprintf(to, 512, "%.300s+0x%lx (%.160s)", info.dli_sname,
                           address - reinterpret_cast<uint64_t>(info.dli_saddr), module);
    } else {
      const uint64_t base = known ? reinterpret_cast<uint64_t>(info.dli_fbase) : 0;
      size = std::snprintf(to, 512, "0x%lx (%.160s)", address - base, module);
    }
    used += static_cast<uint32_t>(std::clamp(size, 0, 511));
    if (i + 1 < stack.count) text_[used++] = '\n';
  }
  return used;
}

// "module.NAME=BUILD_ID PATH" for each file that the trace has not named yet. false: no room in the writer's buffer.
bool CallSites::write_modules(trace::Writer& writer, const Stack& stack) noexcept {
  for (uint32_t i = 0; i < stack.count; ++i) {
    Dl_info info{};
    void* const at = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(stack.frames[i]) - 1);
    if (::dladdr(at, &info) == 0 || info.dli_fname == nullptr || info.dli_fbase == nullptr) continue;
    const void** const end = modules_ + module_count_;
    if (module_count_ == kMostModules || std::find(modules_ + 0, end, info.dli_fbase) != end) continue;
    char build_id[130];
    build_id_text(info.dli_fbase, build_id, sizeof build_id);
    char path[4096];
    char text[4096];
    if (info.dli_fname[0] != '/') mapped_file(at, path, sizeof path);
    const char* const file = info.dli_fname[0] == '/' ? info.dli_fname : path;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const int size = std::snprintf(text, sizeof text, "module.%s=%s %s", slash != nullptr ? slash + 1 : info.dli_fname,
                                   build_id, file);
    if (build_id[0] == '\0' || file[0] == '\0' || size <= 0 || size >= static_cast<int>(sizeof text)) {
      modules_[module_count_++] = info.dli_fbase;
      continue;
    }
    const auto text_bytes = static_cast<uint32_t>(size);
    const auto bytes = static_cast<uint32_t>((sizeof(trace::InfoRecord) + text_bytes + 7) & ~size_t{7});
    auto* record = static_cast<trace::InfoRecord*>(writer.reserve(bytes));
    if (record == nullptr) return false;
    std::memset(reinterpret_cast<char*>(record) + bytes - 8, 0, 8);
    record->header = {trace::RecordKind::info, 0, bytes, 0};
    record->text_bytes = text_bytes;
    record->reserved = 0;
    std::memcpy(record + 1, text, text_bytes);
    writer.commit();
    modules_[module_count_++] = info.dli_fbase;
  }
  return true;
}

bool CallSites::write_new(trace::Writer& writer, uint64_t deadline_ns) noexcept {
  const uint32_t count = std::min(stack_count_.load(std::memory_order_acquire), kMaxStacks);
  while (written_ < count && stacks_[written_].ready.load(std::memory_order_acquire) != 0) {
    if (Recorder::now_ns() >= deadline_ns) return true;
    if (!write_modules(writer, stacks_[written_])) return true;  // when the buffer has been emptied
    const uint32_t text_bytes = describe(stacks_[written_]);
    const auto bytes = static_cast<uint32_t>((sizeof(trace::CallSiteRecord) + text_bytes + 7) & ~size_t{7});
    auto* record = static_cast<trace::CallSiteRecord*>(writer.reserve(bytes));
    if (record == nullptr) return true;  // when the buffer has been emptied
    std::memset(reinterpret_cast<char*>(record) + bytes - 8, 0, 8);
    record->header = {trace::RecordKind::call_site, 0, bytes, 0};
    record->call_site = written_ + 1;
    record->text_bytes = text_bytes;
    std::memcpy(record + 1, text_, text_bytes);
    writer.commit();
    ++written_;
  }
  return false;
}

}  // namespace reprise
