// What a hook's definition carries: C linkage and visibility, although everything else of the library is hidden.
// Callers: preload/hooks, the cuGetProcAddress hooks, entry (reprise_mark).
#pragma once

#define REPRISE_EXPORT extern "C" __attribute__((visibility("default")))
