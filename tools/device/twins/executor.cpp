#include "tools/device/twins/executor.h"

#include <atomic>
#include <cstdio>

#include "tools/device/twins/hashing.h"
#include "tools/device/twins/registry.h"

namespace reprise::sim {
namespace {

// The image and the twin must agree on what the parameters are: else they come from different sources.
bool agrees(const Twin& twin, const KernelRun& run) {
  const KernelImage& kernel = *run.kernel;
  const uint32_t last = twin.parameter_count;
  const uint32_t needed = last == 0 ? 0 : twin.offsets[last - 1] + twin.sizes[last - 1];
  if (needed > run.parameter_bytes) return false;
  if (!kernel.parameters_known) return true;
  if (kernel.parameters.size() != twin.parameter_count) return false;
  for (uint32_t i = 0; i < twin.parameter_count; ++i) {
    const uint32_t offset = kernel.parameters[i].offset - kernel.parameters[0].offset;
    if (offset != twin.offsets[i] || kernel.parameters[i].bytes != twin.sizes[i]) return false;
  }
  return true;
}

// Warns once a process. A kernel without its twin still runs, by hashing, which no comparison can take for the right
// result.
void warn_about(const KernelImage& kernel) {
  static std::atomic<bool> warned;
  if (warned.exchange(true)) return;
  std::fprintf(stderr, "reprise: the twin of %s takes other parameters than the kernel: build both from one source\n",
               kernel.name.c_str());
}

// What a twin does not say may be all that it got; what it reaches otherwise is not known.
void mark_written(const Twin& twin, const TwinLaunch& launch, const KernelRun& run) {
  if (twin.tell_written == nullptr) {
    for (const AddressWord& word : run.addresses) {
      if (word.written != nullptr) word.written->mark_all();
    }
    return;
  }
  const auto mark = [](void* user, uint64_t address, uint64_t bytes) {
    for (const AddressWord& word : static_cast<const KernelRun*>(user)->addresses) {
      const uint64_t begin = address - word.base;
      if (word.written == nullptr || begin >= word.bytes) continue;
      word.written->mark(begin, begin + bytes);
      return;
    }
  };
  twin.tell_written(launch, {mark, const_cast<KernelRun*>(&run)});
}

}  // namespace

void execute_kernel(const KernelRun& run) {
  const Twin* twin = find_twin(run.kernel->name);
  if (twin != nullptr && !agrees(*twin, run)) {
    warn_about(*run.kernel);
    twin = nullptr;
  }
  if (twin == nullptr) {
    hash_kernel(run);
    return;
  }
  TwinLaunch launch{run.parameters, {}, {}, run.shared_bytes};
  for (int i = 0; i < 3; ++i) {
    launch.grid[i] = run.grid[i];
    launch.block[i] = run.block[i];
  }
  twin->run(launch);
  mark_written(*twin, launch, run);
}

}  // namespace reprise::sim
