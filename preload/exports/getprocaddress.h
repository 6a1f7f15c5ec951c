// Which of our functions stands for a driver function that cuGetProcAddress gave. Callers: the hooks of that and of
// cuInit, tests.
#pragma once
#include <cstdint>

namespace reprise {

// `symbol` is the base name the program asked for, `version` the CUDA version it asked with, `per_thread` whether it
// asked for the per-thread default stream; `found` is the driver's answer. Returns our function, or `found` where the
// call is only forwarded anyway or is none that we export.
// A name that the rows lack is given as it is: see only_known_calls().
void* replacement_for(const char* symbol, int version, bool per_thread, void* found) noexcept;

// While calls are managed or recorded, and before cuInit where they will be, the program sees a driver of the version
// that the rows describe: a copy that passes by the hooks would read memory that is away, and a recording that lacks
// calls makes a plan that is never matched. What a newer driver has besides is not found, and its version is not told.
bool only_known_calls() noexcept;

// Where there is no driver, one line says so: CUDA's runtime asks for the version first, and takes us for a stub then.
void say_if_no_driver() noexcept;

}  // namespace reprise
