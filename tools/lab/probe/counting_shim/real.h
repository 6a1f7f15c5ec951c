// The real driver behind the counting shim: opened at the first call, by absolute path. Callers: thunks, hooks
// (hook.h), counts.
#pragma once
#include <cstdint>

namespace reprise::count {

// The real function, or nullptr. Opens REPRISE_COUNT_DRIVER, else the usual places, but never the shim itself.
void* real_symbol(const char* name) noexcept;

template <typename Function>
Function real(const char* name) noexcept {
  return reinterpret_cast<Function>(real_symbol(name));
}

// A row of hooks.def, made by thunks.S.
struct Row {
  const char* symbol;
  const char* base;
  int64_t version;
  void* ours;  // the hook, where there is one, else the thunk
  void* thunk;
};

extern "C" __attribute__((visibility("hidden"))) const Row reprise_count_rows[];
extern "C" __attribute__((visibility("hidden"))) const Row reprise_count_rows_end[];

}  // namespace reprise::count
