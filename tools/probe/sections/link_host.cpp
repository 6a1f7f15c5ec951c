#include "tools/probe/sections/link_host.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tools/probe/disk.h"
#include "tools/probe/host_memory.h"

namespace reprise::probe {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

double rate(size_t bytes, double nanoseconds) { return static_cast<double>(bytes) / nanoseconds * 1e9; }

struct Free {
  void operator()(void* data) const { std::free(data); }
};
using Aligned = std::unique_ptr<void, Free>;

Status disk_method(SectionContext& context, const Limit& limit, const ScratchFile& file, DiskMethod method,
                   size_t total, void* buffer, size_t buffer_bytes) {
  for (const size_t request : {size_t{1} * kMiB, size_t{8} * kMiB, size_t{16} * kMiB}) {
    for (const unsigned depth : {1u, 4u, 16u}) {
      if (request * depth > buffer_bytes || request > total || limit.over()) continue;
      for (const bool write : {true, false}) {
        const DiskJob job{write, method, request, total / request, depth, buffer};
        std::vector<double> samples;
        PROBE_TRY(repeat(limit, 3, samples, [&] { return run_disk_job(file, job); }));
        for (double& sample : samples) sample = rate(job.requests * request, sample);
        context.report.measure(write ? "disk write" : "disk read", "bytes/s", std::move(samples),
                               {{"request_bytes", request}, {"depth", depth}, {"method", to_string(method)}});
      }
    }
  }
  return Status::success();
}

}  // namespace

Status measure_pinning(SectionContext& context, const Limit& limit) {
  const Device& device = context.device;
  const size_t bytes = std::min(size_t{2} << 30, usable_host_bytes()) & ~(2 * kMiB - 1);
  std::vector<double> allocated;
  PROBE_TRY(repeat(limit.part(0.2), 3, allocated, [&]() -> Result<double> {
    const Stopwatch watch;
    const auto buffer = device.allocate_host(bytes);
    if (!buffer.ok()) return buffer.status();
    return rate(bytes, watch.nanoseconds());
  }));
  context.report.measure("cuMemHostAlloc", "bytes/s", std::move(allocated), {{"bytes", bytes}});
  const unsigned most = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned threads = 1; threads <= std::min(most, 16u) && !limit.over(); threads *= 2) {
    std::vector<double> touched, registered, both;
    PROBE_TRY(repeat(limit.part(0.2), 3, both, [&]() -> Result<double> {
      double touch_ns = 0;
      double register_ns = 0;
      const auto memory = HostMemory::register_pages(device, bytes, threads, &touch_ns, &register_ns);
      if (!memory.ok()) return memory.status();
      touched.push_back(rate(bytes, touch_ns));
      registered.push_back(rate(bytes, register_ns));
      return rate(bytes, touch_ns + register_ns);
    }));
    drop_warm_up(touched, registered);
    const Json parameters = {{"bytes", bytes}, {"threads", threads}};
    context.report.measure("first touch", "bytes/s", std::move(touched), parameters);
    context.report.measure("cuMemHostRegister, touched", "bytes/s", std::move(registered), parameters);
    context.report.measure("touch and register", "bytes/s", std::move(both), parameters);
  }
  return Status::success();
}

Status measure_disk(SectionContext& context) {
  struct statvfs space = {};
  if (statvfs(context.options.scratch.c_str(), &space) != 0)
    return {StatusCode::io_error, "no space to look at: " + context.options.scratch};
  const size_t total = std::min<size_t>(size_t{1} << 30, space.f_bavail * space.f_frsize / 4) & ~(16 * kMiB - 1);
  if (total == 0) return {StatusCode::io_error, "too little space in " + context.options.scratch};
  const auto file = ScratchFile::create(context.options.scratch);
  if (!file.ok()) return file.status();
  context.report.fact("disk O_DIRECT", file.value().direct());
  const size_t buffer_bytes = std::min(256 * kMiB, usable_host_bytes()) & ~(kMiB - 1);
  const Aligned buffer(std::aligned_alloc(4096, buffer_bytes));
  if (!buffer) return {StatusCode::io_error, "no memory for the disk's buffer"};
  std::fill_n(static_cast<char*>(buffer.get()), buffer_bytes, 'r');
  for (const DiskMethod method : {DiskMethod::io_uring, DiskMethod::threads}) {
    const Status status = disk_method(context, context.limit.part(method == DiskMethod::io_uring ? 0.5 : 1),
                                      file.value(), method, total, buffer.get(), buffer_bytes);
    if (status.code() != StatusCode::unsupported) PROBE_TRY(status);
    if (!status.ok()) context.report.fact("disk io_uring", status.message());
  }
  return Status::success();
}

}  // namespace reprise::probe
