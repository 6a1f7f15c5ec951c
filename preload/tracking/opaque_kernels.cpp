#include "preload/tracking/opaque_kernels.h"

#include <cstring>

namespace reprise {
namespace {

constexpr const char* kBeginnings[] = {
#define OPAQUE_KERNEL(beginning, library, why) beginning,
#include "preload/tracking/opaque_kernels.def"
#undef OPAQUE_KERNEL
};

// In a mangled name each identifier follows its length.
bool begins_identifier(const char* name, const char* at) {
  if (at == name) return true;
  return name[0] == '_' && name[1] == 'Z' && at[-1] >= '0' && at[-1] <= '9';
}

}  // namespace

bool opaque_by_name(const char* name) noexcept {
  for (const char* const beginning : kBeginnings) {
    for (const char* at = std::strstr(name, beginning); at != nullptr; at = std::strstr(at + 1, beginning)) {
      if (begins_identifier(name, at)) return true;
    }
  }
  return false;
}

}  // namespace reprise
