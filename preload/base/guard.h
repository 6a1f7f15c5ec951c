// Keeps us from seeing ourselves: while a hook runs, calls that the driver or CUPTI make back into the exported
// functions on the same thread go straight to the driver. Callers: every hook; threads of our own.
#pragma once
#include "preload/base/runtime.h"

namespace reprise {

namespace detail {
extern constinit thread_local bool inside_hook __attribute__((tls_model("initial-exec")));
}

// True when this call is the program's own and calls are watched (or `watched`). Calls made until the scope ends are
// then Reprise's own or the driver's: their scopes are false.
class HookScope {
 public:
  HookScope() noexcept : HookScope(watch_flags() != 0) {}
  explicit HookScope(bool watched) noexcept : entered_(__builtin_expect(watched, false) && !detail::inside_hook) {
    if (entered_) detail::inside_hook = true;
  }
  ~HookScope() {
    if (entered_) detail::inside_hook = false;
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  const bool entered_;
};

// For a thread that Reprise started: all its calls go straight to the driver.
inline void mark_internal_thread() noexcept { detail::inside_hook = true; }

}  // namespace reprise
