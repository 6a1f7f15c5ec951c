// How the preloaded library gets the handler that manages memory: replay/ defines it. Caller: entry, once, when a
// budget is set. A build without the replay has no definition; the library then says so and forwards.
#pragma once
#include "preload/base/config.h"
#include "preload/calls/handler.h"

namespace reprise {

class Recorder;

// Called after cuInit has succeeded, on the thread that called it, inside a HookScope. `recorder` is nullptr when
// nothing is recorded. nullptr: memory cannot be managed here, and the log says why; the program then runs unmanaged.
// The handler lives as long as the process.
Handler* make_enforcer(const Config& config, Recorder* recorder) noexcept __attribute__((weak));

}  // namespace reprise
