#include "tools/device/streams/calls.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tools/device/streams/enter.h"

namespace reprise::sim {
namespace {

struct Code {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// The preloaded library is there before this one is, so that one look is enough.
Code shim_code() {
  Code code;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* result) {
        const char* const slash = std::strrchr(object->dlpi_name, '/');
        if (slash == nullptr || std::strcmp(slash, "/libreprise.so") != 0) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          *static_cast<Code*>(result) = {begin, begin + segment.p_memsz};
        }
        return 1;
      },
      &code);
  return code;
}

struct Count {
  uint64_t shim = 0;
  uint64_t others = 0;
};

struct Counts {
  const char* path = nullptr;
  std::mutex mutex;
  std::map<std::string, Count> by_call;
};

Counts& counts() {
  static Counts& instance = *new Counts;
  return instance;
}

// A child that was forked writes nothing.
__attribute__((destructor)) void write_counts() {
  Counts& all = counts();
  if (all.path == nullptr || (driver_state.load() & kForked) != 0) return;
  const int file = open(all.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_CALLS=%s cannot be written\n", all.path);
    return;
  }
  const std::lock_guard lock(all.mutex);
  for (const auto& [call, count] : all.by_call) {
    dprintf(file, "%s %llu %llu\n", call.c_str(), static_cast<unsigned long long>(count.shim),
            static_cast<unsigned long long>(count.others));
  }
  close(file);
}

}  // namespace

bool is_shim(const void* caller) noexcept {
  static const Code code = shim_code();
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return address >= code.begin && address < code.end;
}

bool count_calls() noexcept {
  const char* const path = std::getenv("REPRISE_SIM_CALLS");
  if (path != nullptr && *path != 0) counts().path = strdup(path);
  return counting_calls();
}

bool counting_calls() noexcept { return counts().path != nullptr; }

void note_call(const char* function, bool from_shim) noexcept {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  Count& count = all.by_call[function];
  ++(from_shim ? count.shim : count.others);
}

}  // namespace reprise::sim
