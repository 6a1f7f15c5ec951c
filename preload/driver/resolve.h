// The only place of the library that loads libraries and looks up symbols: the real driver, and libraries that are
// opened where they exist (CUPTI, libunwind). Callers: the driver table, the thunks' slow path, entry, activity
// sources, call sites, the defragmenter, the enforcer, preload/libraries, `reprise doctor`.
#pragma once

namespace reprise {

// Path of the driver that is in use: REPRISE_DRIVER, else the first of LD_LIBRARY_PATH, the loader's cache and the
// usual folders that is not this library itself. nullptr when there is none. Loads it on the first call; thread safe.
const char* driver_path() noexcept;

// Why driver_path() is nullptr, as one line; "" otherwise.
const char* driver_problem() noexcept;

// The driver's own symbol, nullptr when it lacks it (or when there is no driver). Never one of ours.
void* driver_symbol(const char* name) noexcept;

// For other libraries: RTLD_NOW | RTLD_LOCAL. nullptr when it cannot be loaded.
void* load_library(const char* path) noexcept;
void* library_symbol(void* library, const char* name) noexcept;

// The symbol of this name, which this library exports, too, that code at `caller` would get without us: of the
// libraries that the caller's file is linked with, else of those behind this one, else of any that is loaded. nullptr:
// there is none.
void* symbol_behind(const void* caller, const char* name) noexcept;

// Absolute path of the file this code was loaded from (the preloaded library, or a test program).
const char* own_path() noexcept;

}  // namespace reprise
