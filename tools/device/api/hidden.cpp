// An older driver lacks symbols: those of rows that are newer than REPRISE_SIM_VERSION lose their values in this
// library's own table of dynamic symbols before anybody can ask for them, and dlsym finds no symbol without a value
// (System V ABI: such an entry is undefined). What was linked before, by a program without lazy binding, stays linked.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/exports/rows.h"
#include "tools/device/base/cuda_api.h"
#include "tools/device/base/settings.h"

using namespace reprise::sim;

namespace {

struct NamedForm {
  const char* symbol;
  int version;
  const void* address;
};

const NamedForm kNamedForms[] = {
#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  {#symbol, version, reinterpret_cast<const void*>(&symbol)},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};

bool hide(const NamedForm& form) {
  Dl_info where;
  void* entry = nullptr;
  if (dladdr1(form.address, &where, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr) return false;
  if (where.dli_sname == nullptr || std::strcmp(where.dli_sname, form.symbol) != 0) return false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(entry) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(entry) + sizeof(ElfW(Sym));
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0) return false;
  static_cast<ElfW(Sym)*>(entry)->st_value = 0;
  return mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) == 0;
}

// The settings are read at cuInit, too late, and no earlier than needed.
__attribute__((constructor)) void hide_newer_symbols() {
  if (std::getenv("REPRISE_SIM_VERSION") == nullptr) return;
  const int version = static_cast<int>(settings().version);
  for (const NamedForm& form : kNamedForms) {
    if (form.version <= version || hide(form)) continue;
    std::fprintf(stderr, "reprise: simulated device: %s is not hidden\n", form.symbol);
  }
}

}  // namespace
