// hooks.def as data: every exported function with its class, its base name and version, its address here and the
// driver's. Callers: the thunks' slow paths, cuGetProcAddress, tests.
#pragma once
#include <cstddef>
#include <cstdint>

namespace reprise {

enum class RowClass : uint8_t { hooked, harmless, ordered, opaque, graph_update, refused };

struct Row {
  const char* symbol;
  const char* base;  // without _v2, _ptsz, ...
  int version;       // at which cuGetProcAddress gives this form
  RowClass row_class;
};

const Row* rows(size_t* count) noexcept;

// Our function of this row.
void* exported_address(size_t row) noexcept;

// The driver's function of this row, nullptr when it lacks it.
void* driver_address(size_t row) noexcept;

// Does the symbol's suffix say that stream 0 is the per-thread default stream?
bool per_thread_symbol(const char* symbol) noexcept;

}  // namespace reprise
