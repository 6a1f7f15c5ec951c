// Kernels that reach memory which no hook can tell of, known by their names. Callers: functions, their tests.
#pragma once

namespace reprise {

// Is it (mangled or not) of a library of opaque_kernels.def?
bool opaque_by_name(const char* name) noexcept;

}  // namespace reprise
