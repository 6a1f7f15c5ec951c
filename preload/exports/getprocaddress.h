// Which of our functions stands for a driver function that cuGetProcAddress gave. Callers: the cuGetProcAddress hooks,
// tests.
#pragma once
#include <cstdint>

namespace reprise {

// `symbol` is the base name the program asked for, `version` the CUDA version it asked with, `per_thread` whether it
// asked for the per-thread default stream; `found` is the driver's answer. Returns our function, or `found` where the
// call is only forwarded anyway or is none that we export.
void* replacement_for(const char* symbol, int version, bool per_thread, void* found) noexcept;

}  // namespace reprise
