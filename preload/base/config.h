// What the environment asks for. One table (config.cpp) names every variable with its type, default and help; entry
// reads it once, after the off switch. A value that cannot be read costs one warning line and leaves the default.
#pragma once
#include <cstddef>

#include "preload/base/amount.h"

namespace reprise {

struct Config {
  bool disable = false;
  Amount budget;                  // of device memory; fraction: of the program's own peak
  bool defragment = false;        // serve large allocations from stitched chunks, do nothing else
  Amount fragmentation_limit;     // of that; a percentage means nothing
  const char* trace = nullptr;    // path, nullptr: do not record
  const char* plan = nullptr;     // path, nullptr: plan online
  const char* run_log = nullptr;  // path, nullptr: none
  const char* driver = nullptr;   // path; read by resolve.cpp itself
  const char* planner = nullptr;  // path of the `reprise` program; nullptr: ../../bin/reprise from this library
  const char* policy = "auto";
  Amount host_memory;             // cap of the host tier; fraction: of the memory that the process may use
  const char* activity = "auto";  // auto, cupti, events, sim, none
  const char* log = "warn";       // warn, info, debug
  bool keep = false;              // keep temporary files
  bool wait_for_plan = false;     // plan while the program stands still, not while it goes on
  bool call_sites = true;         // record call stacks
  bool trace_is_private = false;  // not a variable: `trace` is a temporary file of entry's making, to be removed
};

// The environment of this process, read on the first call; strings are copies that are never freed.
const Config& config() noexcept;

// Reads a Config from any environment; `lookup` answers nullptr for what is not set. Exposed for tests.
using EnvironmentLookup = const char* (*)(const char* name);
Config read_config(EnvironmentLookup lookup) noexcept;

// The table, for documentation and tests.
struct ConfigVariable {
  const char* name;
  const char* type;
  const char* standard;
  const char* help;
};
const ConfigVariable* config_variables(size_t* count) noexcept;

}  // namespace reprise
