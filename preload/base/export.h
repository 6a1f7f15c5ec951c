// What a hook's definition carries: C linkage and visibility, although everything else of the library is hidden.
#pragma once

#define REPRISE_EXPORT extern "C" __attribute__((visibility("default")))
