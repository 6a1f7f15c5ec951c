#include "preload/base/runtime.h"

#include "preload/base/guard.h"

extern "C" {
constinit uint8_t reprise_watch = 0;
}

namespace reprise::detail {
constinit Runtime runtime{};
constinit bool defragmenting = false;
constinit bool identifying = false;
constinit thread_local bool inside_hook = false;
}  // namespace reprise::detail
