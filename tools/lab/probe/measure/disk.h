// Sequential reads and writes of one file past the page cache, many requests in flight: the SSD tier in its smallest
// form. Callers: section 4 and the unit tests. Needs no GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "preload/trace/status.h"
#include "tools/lab/probe/measure/limit.h"

namespace reprise::probe {

enum class DiskMethod : uint8_t { io_uring, threads };
const char* to_string(DiskMethod method);

// A file in `folder` without a name: it is gone when the process is. Opened with O_DIRECT where the file system can.
class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& folder);
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();
  int descriptor() const { return descriptor_; }
  bool direct() const { return direct_; }

 private:
  ScratchFile() = default;
  int descriptor_ = -1;
  bool direct_ = false;
};

struct DiskJob {
  bool write = false;
  DiskMethod method = DiskMethod::threads;
  size_t request_bytes = 0;  // a multiple of 4096
  size_t requests = 0;       // consecutive from offset 0
  unsigned depth = 1;        // requests in flight
  // depth * request_bytes, aligned to 4096. Each request in flight has a slot of it; which one is left to chance.
  void* buffer = nullptr;
};

// Nanoseconds for all requests (a write includes the final fdatasync). unsupported: the system forbids io_uring.
Result<double> run_disk_job(const ScratchFile& file, const DiskJob& job);

}  // namespace reprise::probe
