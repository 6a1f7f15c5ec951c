#include "tools/lab/probe/measure/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/lab/probe/measure/ring.h"

namespace reprise::probe {
namespace {

Status failed(const char* what, int error) {
  return {StatusCode::io_error, fmt::format("{}: {}", what, std::strerror(error))};
}

void* slot_of(const DiskJob& job, size_t request) {
  return static_cast<char*>(job.buffer) + request % job.depth * job.request_bytes;
}

Status short_transfer(const DiskJob& job, int64_t result) {
  if (result < 0) return failed(job.write ? "write" : "read", static_cast<int>(-result));
  return {StatusCode::io_error,
          fmt::format("{} of {} bytes moved {}", job.write ? "write" : "read", job.request_bytes, result)};
}

Status run_ring(int descriptor, const DiskJob& job) {
  auto opened = Ring::open(job.depth);
  if (!opened.ok()) return opened.status();
  Ring& ring = opened.value();
  size_t issued = 0;
  size_t complete = 0;
  std::vector<size_t> free_slots(job.depth);
  for (size_t i = 0; i < job.depth; ++i) free_slots[i] = i;
  Status problem;
  // After a failure what is in flight is still waited for: the kernel writes into the buffer until then.
  while (complete < issued || (issued < job.requests && problem.ok())) {
    while (problem.ok() && issued < job.requests && !free_slots.empty()) {
      const size_t slot = free_slots.back();
      free_slots.pop_back();
      ring.push(job.write, descriptor, slot_of(job, slot), job.request_bytes, issued * job.request_bytes, slot);
      ++issued;
    }
    uint64_t slot = 0;
    int result = 0;
    if (Status waited = ring.wait(slot, result); !waited.ok()) return waited;
    ++complete;
    free_slots.push_back(slot);
    if (result != static_cast<int>(job.request_bytes)) problem = short_transfer(job, result);
  }
  return problem;
}

Status run_threads(int descriptor, const DiskJob& job) {
  std::atomic<size_t> next{0};
  std::atomic<int64_t> bad{INT64_MAX};
  std::vector<std::thread> workers;
  for (unsigned slot = 0; slot < job.depth; ++slot) {
    workers.emplace_back([&, slot] {
      void* data = slot_of(job, slot);
      for (size_t i = next++; i < job.requests && bad.load() == INT64_MAX; i = next++) {
        const auto offset = static_cast<off_t>(i * job.request_bytes);
        const ssize_t moved = job.write ? pwrite(descriptor, data, job.request_bytes, offset)
                                        : pread(descriptor, data, job.request_bytes, offset);
        if (moved != static_cast<ssize_t>(job.request_bytes)) bad.store(moved < 0 ? -errno : moved);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return bad.load() == INT64_MAX ? Status::success() : short_transfer(job, bad.load());
}

}  // namespace

const char* to_string(DiskMethod method) { return method == DiskMethod::io_uring ? "io_uring" : "threads"; }

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), direct_(other.direct_) {}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<ScratchFile> ScratchFile::create(const std::string& folder) {
  ScratchFile file;
  std::string path = folder + "/reprise-probe-XXXXXX";
  for (const int direct : {O_DIRECT, 0}) {
    path = folder + "/reprise-probe-XXXXXX";
    file.descriptor_ = mkostemp(path.data(), O_CLOEXEC | direct);
    if (file.descriptor_ < 0) {
      std::remove(path.c_str());  // a file system that knows no O_DIRECT may have made the file before it said so
      continue;
    }
    std::remove(path.c_str());
    file.direct_ = direct != 0;
    return Result<ScratchFile>(std::move(file));
  }
  return failed(folder.c_str(), errno);
}

Result<double> run_disk_job(const ScratchFile& file, const DiskJob& job) {
  if (job.request_bytes == 0 || job.request_bytes % 4096 != 0 || job.depth == 0) {
    return Status(StatusCode::invalid_argument, "requests must be multiples of 4096 bytes, and the depth at least 1");
  }
  if (!job.write) posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  const Stopwatch watch;
  const Status status =
      job.method == DiskMethod::io_uring ? run_ring(file.descriptor(), job) : run_threads(file.descriptor(), job);
  if (!status.ok()) return status;
  if (job.write && fdatasync(file.descriptor()) != 0) return failed("fdatasync", errno);
  return watch.nanoseconds();
}

}  // namespace reprise::probe
