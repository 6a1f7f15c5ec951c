// The variables a program is started with: Reprise's own, LD_PRELOAD, and what frameworks need (frameworks.h). Rows of
// the REPRISE_* variables: preload/base/variables.def. Caller: session.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/status.h"
#include "tools/cli/sizes.h"
#include "tools/launch/claim.h"

namespace reprise::tools {

using Variables = std::vector<std::pair<std::string, std::string>>;

// What the options of run, record and replay have in common.
struct Settings {
  Budget budget;
  Budget host_memory;              // a percentage is one of the machine's memory
  std::string device = "gpu";      // or "sim"
  std::string framework = "auto";  // of kFrameworks
  std::string trace;               // absolute paths; empty: not set
  std::string plan;
  std::string run_log;
  std::string policy;
  std::string safety;
  std::string examine;  // seconds
  bool audit = false;
  uint64_t audit_iterations = 0;
  bool defragment = false;           // instead of a budget
  uint64_t fragmentation_limit = 0;  // of that; 0: the default
  struct Keeps {
    bool files = false;  // the shim leaves its temporary files
    std::string plans;   // for the program's next run: "1", "0"; empty: as the environment says
  } keeps;
  std::vector<std::shared_ptr<const Claim>> claims = {};  // of the files that the user named
};

// Ok when the loader can preload a library from this path.
Status check_preloadable(const std::string& path);
// Ok when the libraries that the settings need are installed, where the loader can take them from.
Status check_installation(const Settings& settings);
Variables make_environment(const Settings& settings);

// A line for each of the user's own settings that hides tensors from Reprise, or that has no effect under it.
std::vector<std::string> environment_warnings(const Settings& settings);

}  // namespace reprise::tools
