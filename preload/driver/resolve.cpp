#include "preload/driver/resolve.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reprise {
namespace {

constexpr char kDriverName[] = "libcuda.so.1";
constexpr const char* kUsualFolders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib64/nvidia",
    "/usr/lib/nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib",
};

// Plain data, filled once: nothing here has a destructor, the driver outlives us.
struct Found {
  void* handle;
  char path[PATH_MAX];
  char problem[PATH_MAX + 160];
};
Found found;
pthread_once_t find_once = PTHREAD_ONCE_INIT;
pthread_once_t own_once = PTHREAD_ONCE_INIT;
char own_file[PATH_MAX];

void find_own_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&find_own_path), &info) == 0 || info.dli_fname == nullptr) return;
  if (realpath(info.dli_fname, own_file) == nullptr) own_file[0] = '\0';
}

bool same_file(const char* left, const char* right) {
  struct stat a;
  struct stat b;
  return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// A path with a slash is not matched against the SONAMEs of what is loaded, so this cannot give this library itself.
bool try_path(const char* path) {
  if (access(path, R_OK) != 0 || same_file(path, own_path())) return false;
  char absolute[PATH_MAX];
  if (realpath(path, absolute) == nullptr) return false;
  void* handle = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  // A library of another maker under this name, or a toolkit's stub in the search path, is still "a driver": only
  // a file that has no cuInit at all is skipped.
  if (dlsym(handle, "cuInit") == nullptr) return false;
  found.handle = handle;
  std::snprintf(found.path, sizeof found.path, "%s", absolute);
  return true;
}

bool try_folder(const char* folder, size_t length) {
  if (length == 0 || length + sizeof kDriverName + 1 > PATH_MAX) return false;
  char path[PATH_MAX];
  std::snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(length), folder, kDriverName);
  return try_path(path);
}

bool try_library_path() {
  const char* folders = std::getenv("LD_LIBRARY_PATH");
  while (folders != nullptr && *folders != '\0') {
    const size_t length = std::strcspn(folders, ":;");
    if (try_folder(folders, length)) return true;
    folders += length;
    if (*folders != '\0') ++folders;
  }
  return false;
}

// The loader's cache keeps full paths as NUL-terminated strings: every one that ends in "/libcuda.so.1" is a candidate.
bool try_loader_cache() {
  const int file = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status;
  const bool usable = fstat(file, &status) == 0 && status.st_size > 0;
  const size_t size = usable ? static_cast<size_t>(status.st_size) : 0;
  void* map = usable ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (map == MAP_FAILED) return false;
  const char* begin = static_cast<const char*>(map);
  const char* end = begin + size;
  bool done = false;
  for (const char* at = begin; !done && at < end;) {
    const void* hit = memmem(at, static_cast<size_t>(end - at), "/libcuda.so.1", sizeof "/libcuda.so.1");
    if (hit == nullptr) break;
    const char* start = static_cast<const char*>(hit);
    at = start + 1;
    while (start > begin && start[-1] != '\0') --start;
    done = *start == '/' && try_path(start);
  }
  munmap(map, size);
  return done;
}

void find_driver() {
  const char* wanted = std::getenv("REPRISE_DRIVER");
  if (wanted != nullptr && *wanted != '\0') {
    if (try_path(wanted)) return;
    const char* why = dlerror();
    std::snprintf(found.problem, sizeof found.problem, "REPRISE_DRIVER=%s is not a loadable driver%s%s", wanted,
                  why != nullptr ? ": " : "", why != nullptr ? why : "");
    return;
  }
  if (try_library_path() || try_loader_cache()) return;
  for (const char* folder : kUsualFolders) {
    if (try_folder(folder, std::strlen(folder))) return;
  }
  std::snprintf(found.problem, sizeof found.problem,
                "no CUDA driver (libcuda.so.1) found; set REPRISE_DRIVER to its absolute path");
}

}  // namespace

const char* own_path() noexcept {
  pthread_once(&own_once, find_own_path);
  return own_file;
}

const char* driver_path() noexcept {
  pthread_once(&find_once, find_driver);
  return found.handle != nullptr ? found.path : nullptr;
}

const char* driver_problem() noexcept {
  pthread_once(&find_once, find_driver);
  return found.problem;
}

void* driver_symbol(const char* name) noexcept {
  pthread_once(&find_once, find_driver);
  return found.handle != nullptr ? dlsym(found.handle, name) : nullptr;
}

void* load_library(const char* path) noexcept { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

void* library_symbol(void* library, const char* name) noexcept {
  return library != nullptr ? dlsym(library, name) : nullptr;
}

namespace {

// Looks in the library at `path` and in those that it is linked with. Never gives a symbol of ours.
void* symbol_of(const char* path, const char* name) {
  // The program's own file cannot be opened: then there is no handle.
  void* const loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* const symbol = dlsym(loaded, name);
  dlclose(loaded);
  Dl_info by;
  Dl_info ours;
  const bool is_ours = symbol != nullptr && dladdr(symbol, &by) != 0 &&
                       dladdr(reinterpret_cast<void*>(&symbol_of), &ours) != 0 && by.dli_fbase == ours.dli_fbase;
  return is_ours ? nullptr : symbol;
}

struct SymbolSearch {
  const char* name;
  void* symbol;
};

int look_in(dl_phdr_info* library, size_t /*bytes*/, void* user) {
  auto& search = *static_cast<SymbolSearch*>(user);
  if (library->dlpi_name[0] != '\0') search.symbol = symbol_of(library->dlpi_name, search.name);
  return search.symbol != nullptr ? 1 : 0;
}

}  // namespace

void* symbol_behind(const void* caller, const char* name) noexcept {
  Dl_info file;
  void* symbol = dladdr(caller, &file) != 0 ? symbol_of(file.dli_fname, name) : nullptr;
  if (symbol == nullptr) symbol = dlsym(RTLD_NEXT, name);
  if (symbol != nullptr) return symbol;
  // A call that ended a function of the library that is linked with it comes from where that one was called.
  SymbolSearch search{name, nullptr};
  dl_iterate_phdr(&look_in, &search);
  return search.symbol;
}

}  // namespace reprise
