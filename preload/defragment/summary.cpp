// The summary at the end of the process: one line for people with REPRISE_LOG=info, one for REPRISE_RUN_LOG.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "preload/base/causes.h"
#include "preload/base/run_log_keys.h"
#include "preload/defragment/defragmenter.h"

namespace reprise {
namespace {

unsigned long long number(uint64_t value) noexcept { return value; }

// The only line of this mode, put together without memory of its own.
class SummaryLine {
 public:
  SummaryLine() noexcept { append("{\"kind\":\"%s\"", run_log::defragment::line.name); }
  SummaryLine& add(const run_log::Key<run_log::defragment::Tag, run_log::Number>& key, uint64_t value) noexcept {
    append(",\"%s\":%llu", key.name, number(value));
    return *this;
  }
  // In one write, so that it is whole or not there.
  bool write(const char* path) noexcept {
    append("}\n");
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const bool written = file >= 0 && ::write(file, text_, length_) == static_cast<ssize_t>(length_);
    if (file >= 0) ::close(file);
    return written;
  }

 private:
  void append(const char* format, ...) noexcept __attribute__((format(printf, 2, 3))) {
    va_list values;
    va_start(values, format);
    const int length = std::vsnprintf(text_ + length_, sizeof text_ - length_, format, values);
    va_end(values);
    if (length > 0) length_ = std::min(length_ + static_cast<size_t>(length), sizeof text_ - 1);
  }

  char text_[2048];
  size_t length_ = 0;
};

void write_line(const char* path, const stitch::Stats& stats, uint64_t chunk, uint64_t calls, uint64_t waits) noexcept {
  using namespace run_log::defragment;
  SummaryLine line;
  line.add(chunk_bytes, chunk)
      .add(peak_live_bytes, stats.peak_live_bytes)
      .add(peak_live_chunks, stats.peak_live_chunks)
      .add(peak_reserved_bytes, stats.peak_reserved_chunks * chunk)
      .add(exact, stats.states[0])
      .add(single, stats.states[1])
      .add(multiple, stats.states[2])
      .add(insufficient, stats.states[3])
      .add(out_of_memory, stats.states[4])
      .add(splits, stats.splits)
      .add(stitches, stats.stitches)
      .add(stitched_chunks, stats.stitched_chunks)
      .add(stitch_frees, stats.stitch_frees)
      .add(recycled_blocks, stats.recycled_primitives)
      .add(vmm_calls, calls)
      .add(run_log::defragment::waits, waits);
  if (!line.write(path)) say<Cause::defragmenting_not_told>(path);
}

}  // namespace

void Defragmenter::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  const stitch::Stats& stats = stitcher_.stats();
  const uint64_t chunk = device_.chunk_bytes();
  const uint64_t reserved = stats.peak_reserved_chunks * chunk;
  const double live = static_cast<double>(stats.peak_live_bytes);
  say<Cause::defragmented>(stats.peak_live_bytes, reserved,
                           reserved != 0 ? 100 * live / static_cast<double>(reserved) : 100.0, stats.states[0],
                           stats.states[0] + stats.states[1] + stats.states[2] + stats.states[3], stats.stitches);
  if (config_.run_log != nullptr) write_line(config_.run_log, stats, chunk, device_.driver_calls(), waits_);
}

}  // namespace reprise
