#include "tools/device/twins/hash_log.h"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "tools/device/base/settings.h"

namespace reprise::sim {
namespace {

// Never closed: streams write to it until the process ends.
std::FILE* log_file() {
  static std::FILE* const file = [] {
    const char* const path = settings().hash_log;
    std::FILE* const opened = path == nullptr ? nullptr : std::fopen(path, "we");
    if (path != nullptr && opened == nullptr) {
      std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_HASH_LOG=%s cannot be written\n", path);
    }
    return opened;
  }();
  return file;
}

}  // namespace

void log_hashes(const HashedLaunch& launch) {
  std::FILE* const file = log_file();
  if (file == nullptr) return;
  const KernelRun& run = launch.run;
  std::string operands;
  for (const auto& tensor : launch.tensors) {
    char text[64];
    std::snprintf(text, sizeof text, " %" PRIu64 ":%016" PRIx64, tensor.bytes, tensor.content);
    operands += text;
  }
  // One call, so that lines of streams do not mix.
  std::fprintf(file, "%" PRIu64 " %s %u,%u,%u %016" PRIx64 "%s = %016" PRIx64 "\n", run.call, run.kernel->name.c_str(),
               run.grid[0], run.grid[1], run.grid[2], launch.parameters, operands.c_str(), launch.result);
  std::fflush(file);
}

}  // namespace reprise::sim
