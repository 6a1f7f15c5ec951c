// What is told at the end: one line for people with REPRISE_LOG=info, one for REPRISE_RUN_LOG.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "preload/base/log.h"
#include "preload/defragment/defragmenter.h"

namespace reprise {
namespace {

unsigned long long number(uint64_t value) noexcept { return value; }

unsigned long long mebibytes(uint64_t bytes) noexcept { return bytes >> 20; }

// One JSON line, the only one of this mode; in one write, so that it is whole or not there.
void write_line(const char* path, const stitch::Stats& stats, uint64_t chunk, uint64_t calls, uint64_t waits) noexcept {
  char line[1024];
  const int length = std::snprintf(
      line, sizeof line,
      "{\"kind\":\"defragment\",\"chunk_bytes\":%llu,\"peak_live_bytes\":%llu,\"peak_live_chunks\":%llu,"
      "\"peak_reserved_bytes\":%llu,\"exact\":%llu,\"single\":%llu,\"multiple\":%llu,\"insufficient\":%llu,"
      "\"out_of_memory\":%llu,\"splits\":%llu,\"stitches\":%llu,\"stitched_chunks\":%llu,\"stitch_frees\":%llu,"
      "\"recycled_pieces\":%llu,\"vmm_calls\":%llu,\"waits\":%llu}\n",
      number(chunk), number(stats.peak_live_bytes), number(stats.peak_live_chunks),
      number(stats.peak_reserved_chunks * chunk), number(stats.states[0]), number(stats.states[1]),
      number(stats.states[2]), number(stats.states[3]), number(stats.states[4]), number(stats.splits),
      number(stats.stitches), number(stats.stitched_chunks), number(stats.stitch_frees),
      number(stats.recycled_primitives), number(calls), number(waits));
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, line, static_cast<size_t>(length)) != length) {
    log_line(LogLevel::warn, "cannot write %s: what was defragmented is not told", path);
  }
  if (file >= 0) ::close(file);
}

}  // namespace

void Defragmenter::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  const stitch::Stats& stats = stitcher_.stats();
  const uint64_t chunk = device_.chunk_bytes();
  const uint64_t reserved = stats.peak_reserved_chunks * chunk;
  log_line(
      LogLevel::info,
      "large allocations: %llu MiB live at most, %llu MiB of device memory for them at most (%.1f %% used); %llu of "
      "%llu found at their size, %llu stitched",
      mebibytes(stats.peak_live_bytes), mebibytes(reserved),
      reserved != 0 ? 100.0 * static_cast<double>(stats.peak_live_bytes) / static_cast<double>(reserved) : 100.0,
      number(stats.states[0]), number(stats.states[0] + stats.states[1] + stats.states[2] + stats.states[3]),
      number(stats.stitches));
  if (config_.run_log != nullptr) write_line(config_.run_log, stats, chunk, device_.driver_calls(), waits_);
}

}  // namespace reprise
