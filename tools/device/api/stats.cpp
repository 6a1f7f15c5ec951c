// The counters of RepriseSimStats (preload/driver/sim_abi.h), also as JSON at exit, and the answer of calls that are
// not implemented.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "preload/driver/sim_abi.h"
#include "tools/device/api/unsupported.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/clock.h"
#include "tools/device/engines/device.h"
#include "tools/device/engines/host_time.h"
#include "tools/device/streams/enter.h"
#include "tools/device/twins/hashing.h"

namespace reprise::sim {
namespace {

std::atomic<uint64_t> unsupported_count{0};

void write_stats(int file, const RepriseSimStats& s, bool last) {
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  dprintf(file,
          "{\"used_bytes\": %llu, \"peak_bytes\": %llu, \"create_calls\": %llu, \"release_calls\": %llu, "
          "\"map_calls\": %llu, \"unmap_calls\": %llu, \"set_access_calls\": %llu, \"launches\": %llu, "
          "\"copies\": %llu, \"copied_bytes_h2d\": %llu, \"copied_bytes_d2h\": %llu, \"compute_busy_ns\": %llu, "
          "\"copy_busy_ns\": %llu, \"overlap_busy_ns\": %llu, \"unsupported_calls\": %llu, \"parameter_bytes\": %llu, "
          "\"hashed_parameter_bytes\": %llu, \"modelled_ns\": %llu, \"host_ns\": %llu, \"late_operations\": %llu, "
          "\"late_ns\": %llu, \"lost_ns\": %llu%s",
          number(s.used_bytes), number(s.peak_bytes), number(s.create_calls), number(s.release_calls),
          number(s.map_calls), number(s.unmap_calls), number(s.set_access_calls), number(s.launches), number(s.copies),
          number(s.copied_bytes_h2d), number(s.copied_bytes_d2h), number(s.compute_busy_ns), number(s.copy_busy_ns),
          number(s.overlap_busy_ns), number(s.unsupported_calls), number(s.parameter_bytes),
          number(s.hashed_parameter_bytes), number(s.modelled_ns), number(s.host_ns), number(s.late_operations),
          number(s.late_ns), number(s.lost_ns), last ? "}" : "");
}

// What was lost is in the times that the program saw.
void warn_about_host() {
  RepriseSimStats stats;
  repriseSimGetStats(0, &stats);
  if (stats.lost_ns <= stats.modelled_ns / 100) return;
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  std::fprintf(
      stderr,
      "reprise: simulated device: times are the host's: it took %.3f s of processors for what takes %.3f s by the "
      "modelled clock, and fell back by %.3f s; a lower REPRISE_SIM_MEMORY_RATE helps\n",
      seconds(stats.host_ns), seconds(stats.modelled_ns), seconds(stats.lost_ns));
}

// One object for device 0, with an array "devices" for all when there are several. A child that was forked writes
// nothing.
__attribute__((destructor)) void write_at_exit() {
  if (driver_state.load() != 0 && (driver_state.load() & (kForked | kNotInitialized)) != 0) return;
  if (modelled_clock()) warn_about_host();
  const char* path = settings().stats_path;
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_STATS=%s cannot be written\n", path);
    return;
  }
  RepriseSimStats stats;
  repriseSimGetStats(0, &stats);
  write_stats(file, stats, device_count() == 1);
  if (device_count() > 1) {
    dprintf(file, ", \"devices\": [");
    for (int i = 0; i < device_count(); ++i) {
      repriseSimGetStats(i, &stats);
      if (i > 0) dprintf(file, ", ");
      write_stats(file, stats, true);
    }
    dprintf(file, "]}");
  }
  dprintf(file, "\n");
  close(file);
}

}  // namespace

int unsupported(const char* function) noexcept {
  if ((driver_state.load() & (kForked | kNotInitialized)) != 0) return CUDA_ERROR_NOT_INITIALIZED;
  unsupported_count.fetch_add(1, std::memory_order_relaxed);
  static std::mutex mutex;  // its destructor does nothing
  static auto& told = *new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (told.insert(function).second) {
      std::fprintf(stderr, "reprise: simulated device: %s is not supported\n", function);
    }
  }
  if (settings().strict) std::abort();
  return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t unsupported_calls() noexcept { return unsupported_count.load(std::memory_order_relaxed); }

}  // namespace reprise::sim

void repriseSimGetStats(int device, RepriseSimStats* stats) {
  using namespace reprise::sim;
  *stats = {};
  Device* found = find_device(device);
  if (found == nullptr) return;
  stats->used_bytes = found->used();
  stats->peak_bytes = found->peak();
  stats->create_calls = found->counters.create_calls;
  stats->release_calls = found->counters.release_calls;
  stats->map_calls = found->counters.map_calls;
  stats->unmap_calls = found->counters.unmap_calls;
  stats->set_access_calls = found->counters.set_access_calls;
  stats->launches = found->counters.launches;
  stats->copies = found->counters.copies;
  stats->copied_bytes_h2d = found->counters.copied_bytes_h2d;
  stats->copied_bytes_d2h = found->counters.copied_bytes_d2h;
  const BusyTimes times = found->engines.clock.read();
  stats->compute_busy_ns = times.compute_ns;
  stats->copy_busy_ns = times.copy_ns;
  stats->overlap_busy_ns = times.overlap_ns;
  stats->unsupported_calls = unsupported_calls();
  stats->modelled_ns = found->counters.modelled_ns;
  stats->host_ns = found->counters.host_ns;
  stats->late_operations = found->counters.late_operations;
  stats->late_ns = found->counters.late_ns;
  stats->lost_ns = lost_host_time_ns();
  const HashedShare share = hashed_share();
  stats->parameter_bytes = share.parameter_bytes;
  stats->hashed_parameter_bytes = share.hashed_bytes;
}

void repriseSimResetPeak(int device) {
  if (auto* found = reprise::sim::find_device(device); found != nullptr) found->reset_peak();
}
