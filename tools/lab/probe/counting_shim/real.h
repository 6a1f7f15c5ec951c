// The real driver behind the counting shim: opened at the first call, by absolute path. Callers: thunks, hooks
// (hook.h), counts.
#pragma once

namespace reprise::count {

// The real function, or nullptr. Opens REPRISE_COUNT_DRIVER, else the usual places, but never the shim itself.
void* real_symbol(const char* name) noexcept;

template <typename Function>
Function real(const char* name) noexcept {
  return reinterpret_cast<Function>(real_symbol(name));
}

}  // namespace reprise::count
