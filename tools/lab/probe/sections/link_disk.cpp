// Section 4, the disk: large reads and writes past the page cache by io_uring and by threads, and what a small one
// takes. The best of them is the SSD of the machine file.
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "tools/lab/probe/measure/disk.h"
#include "tools/lab/probe/measure/host_memory.h"
#include "tools/lab/probe/sections/link_host.h"

namespace reprise::probe {
namespace {

constexpr size_t kStep = 16 * kMiB;      // the largest request
constexpr double kJobNanoseconds = 2e8;  // what one job should take, so that every method has its turn
constexpr size_t kSmall = 4096;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

struct Disk {
  const ScratchFile* file = nullptr;
  std::unique_ptr<void, Free> buffer;
  size_t buffer_bytes = 0;
  size_t total = 0;                // that one job moves
  std::array<double, 2> best{{}};  // [0] read, [1] write
};

double rate(const DiskJob& job, double nanoseconds) {
  return static_cast<double>(job.requests * job.request_bytes) / nanoseconds * 1e9;
}

// A slow disk moves less, so that no method waits for another's gigabyte.
Status fit_total(Disk& disk, size_t most) {
  disk.total = std::min(most, 4 * kStep);
  const DiskJob job{true, DiskMethod::threads, kStep, disk.total / kStep, 1, disk.buffer.get()};
  const auto time = run_disk_job(*disk.file, job);
  if (!time.ok()) return time.status();
  const double bytes = rate(job, time.value()) * kJobNanoseconds / 1e9;
  disk.total = bytes > static_cast<double>(most) ? most : std::max(static_cast<size_t>(bytes), 4 * kStep);
  disk.total = std::min(disk.total, most) & ~(kStep - 1);
  return Status::success();
}

Status rates(SectionContext& context, const Limit& limit, Disk& disk, DiskMethod method) {
  bool any = false;  // the first, which is the most telling, is not left out for want of time
  for (const unsigned depth : {16u, 4u, 1u}) {
    for (const size_t request : {kMiB, 8 * kMiB, 16 * kMiB}) {
      if (request * depth > disk.buffer_bytes) continue;
      if (limit.over() && (any || interrupted())) {
        context.report.note(
            fmt::format("disk, {}: stopped before depth {} of {} MiB", to_string(method), depth, request / kMiB));
        context.report.set_partial();
        return Status::success();
      }
      any = true;
      for (const bool write : {true, false}) {
        const DiskJob job{write, method, request, disk.total / request, depth, disk.buffer.get()};
        std::vector<double> samples;
        PROBE_TRY(repeat(limit, 3, samples, [&] { return run_disk_job(*disk.file, job); }));
        for (double& sample : samples) sample = rate(job, sample);
        if (const auto summary = summarize(samples)) disk.best[write] = std::max(disk.best[write], summary->median);
        context.report.measure(
            write ? "disk write" : "disk read", "bytes/s", std::move(samples),
            {{"request_bytes", request}, {"depth", depth}, {"method", to_string(method)}, {"bytes", disk.total}});
      }
    }
  }
  return Status::success();
}

// One small transfer after another. The median of the reads goes to `read_ns`.
Status latency(SectionContext& context, const Limit& limit, const Disk& disk, double& read_ns) {
  constexpr size_t kTransfers = 128;
  for (const bool write : {true, false}) {
    const DiskJob job{write, DiskMethod::threads, kSmall, kTransfers, 1, disk.buffer.get()};
    std::vector<double> samples;
    PROBE_TRY(repeat(limit, 5, samples, [&]() -> Result<double> {
      auto time = run_disk_job(*disk.file, job);
      if (time.ok()) time.value() /= kTransfers;
      return time;
    }));
    if (const auto summary = summarize(samples); summary && !write) read_ns = summary->median;
    context.report.measure(write ? "disk write, one small after another" : "disk read, one small after another", "ns",
                           std::move(samples), {{"request_bytes", kSmall}});
  }
  return Status::success();
}

// Memory that looks like a disk is none, and what went through the page cache was not measured.
bool is_disk(const ScratchFile& file, const struct statfs& space) {
  const auto type = static_cast<uint64_t>(space.f_type);
  return file.direct() && type != TMPFS_MAGIC && type != RAMFS_MAGIC;
}

}  // namespace

Status measure_disk(SectionContext& context, const Limit& limit) {
  const std::string& folder = context.options.scratch;
  struct statfs space = {};
  if (statfs(folder.c_str(), &space) != 0) return {StatusCode::io_error, "no space to look at: " + folder};
  const size_t free_bytes = space.f_bavail * static_cast<size_t>(space.f_bsize);
  const size_t most = std::min<size_t>(size_t{1} << 30, free_bytes / 4) & ~(kStep - 1);
  if (most == 0) return {StatusCode::io_error, "too little space in " + folder};
  const auto file = ScratchFile::create(folder);
  if (!file.ok()) return file.status();
  const bool real = is_disk(file.value(), space);
  context.report.fact("disk O_DIRECT", file.value().direct());
  context.report.fact("disk file system", fmt::format("{:#x}{}", static_cast<uint64_t>(space.f_type),
                                                      real || !file.value().direct() ? "" : ", memory"));
  Disk disk;
  disk.file = &file.value();
  disk.buffer_bytes = std::min(256 * kMiB, usable_host_bytes()) & ~(kStep - 1);
  disk.buffer.reset(disk.buffer_bytes ? std::aligned_alloc(4096, disk.buffer_bytes) : nullptr);
  if (!disk.buffer) return {StatusCode::io_error, "no memory for the disk's buffer"};
  std::fill_n(static_cast<char*>(disk.buffer.get()), disk.buffer_bytes, 'r');
  PROBE_TRY(fit_total(disk, most));
  double read_ns = 0;
  PROBE_TRY(latency(context, limit.part(0.2), disk, read_ns));
  for (const DiskMethod method : {DiskMethod::io_uring, DiskMethod::threads}) {
    const Status status = rates(context, limit.part(method == DiskMethod::io_uring ? 0.5 : 1), disk, method);
    if (status.code() != StatusCode::unsupported) PROBE_TRY(status);
    if (!status.ok()) context.report.fact("disk io_uring", status.message());
  }
  if (!real || disk.best[0] <= 0 || disk.best[1] <= 0) return Status::success();
  Machine& machine = context.machine;
  machine.ssd_read_bytes_per_second = disk.best[0];
  machine.ssd_write_bytes_per_second = disk.best[1];
  machine.ssd_bytes = static_cast<double>(free_bytes);
  if (read_ns > 0) machine.ssd_latency_ns = read_ns;
  return Status::success();
}

}  // namespace reprise::probe
