#include "tools/report/symbols/libdw.h"

#include <dlfcn.h>

namespace reprise::report {
namespace {

template <typename Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool open(Libdw& functions) {
  void* const library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool complete = true;
#define REPRISE_LIBDW_TAKE(name) complete = take(library, #name, functions.name) && complete;
  REPRISE_LIBDW_FUNCTIONS(REPRISE_LIBDW_TAKE)
#undef REPRISE_LIBDW_TAKE
  return complete;
}

}  // namespace

const Libdw* libdw() {
  static Libdw functions;
  static const bool complete = open(functions);
  return complete ? &functions : nullptr;
}

}  // namespace reprise::report
