// What glibc has gained since 2.28 and the compiler's own libraries refer to, made of what it had: known inside the
// library alone, and found before glibc's. tests/abi looks for what is missing here.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// Their first argument is the layout of struct stat: 1 on x86-64.
extern "C" int __fxstat(int version, int file, struct stat* status) noexcept;
extern "C" int __xstat(int version, const char* path, struct stat* status) noexcept;
extern "C" int __lxstat(int version, const char* path, struct stat* status) noexcept;

// 2.33. The forms with 64 in their names are the same on 64-bit systems.
HIDDEN int fstat(int file, struct stat* status) noexcept { return __fxstat(1, file, status); }
HIDDEN int stat(const char* path, struct stat* status) noexcept { return __xstat(1, path, status); }
HIDDEN int lstat(const char* path, struct stat* status) noexcept { return __lxstat(1, path, status); }
HIDDEN int fstat64(int file, struct stat64* status) noexcept {
  return __fxstat(1, file, reinterpret_cast<struct stat*>(status));
}

// 2.32: libstdc++ counts references without atomics where it is not zero.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// 2.36: libstdc++'s random_device, which nothing here uses.
HIDDEN uint32_t arc4random() noexcept {
  uint32_t value = 0;
  (void)!getrandom(&value, sizeof value, 0);
  return value;
}

// 2.35: the unwinder's way from an address to what it needs. It falls back to nothing.
namespace {

struct ObjectSearch {
  uintptr_t address;
  dl_find_object* found;
};

int look_at(dl_phdr_info* info, size_t, void* data) {
  const auto& search = *static_cast<ObjectSearch*>(data);
  const ElfW(Phdr)* frames = nullptr;
  uintptr_t begin = 0, end = 0;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
    if (part.p_type != PT_LOAD || search.address < at || search.address >= at + part.p_memsz) continue;
    begin = at;
    end = at + part.p_memsz;
  }
  if (begin == 0 || frames == nullptr) return 0;
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

HIDDEN int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  ObjectSearch search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(look_at, &search) == 1 ? 0 : -1;
}
