#include "tools/lab/probe/measure/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace reprise::probe {
namespace {

void touch(char* begin, char* end) {
  constexpr size_t kPage = 4096;
  for (char* page = begin; page < end; page += kPage) *page = 1;
}

void touch_with_threads(char* data, size_t bytes, unsigned threads) {
  std::vector<std::thread> workers;
  const size_t part = (bytes / threads + 4095) / 4096 * 4096;
  for (unsigned i = 0; i < threads; ++i) {
    char* begin = data + std::min(bytes, part * i);
    char* end = data + std::min(bytes, part * (i + 1));
    workers.emplace_back([begin, end] { touch(begin, end); });
  }
  for (std::thread& worker : workers) worker.join();
}

// A number in a file of the control group; 0 where there is none ("max").
size_t control_group_value(const char* path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? value : 0;
}

}  // namespace

const char* to_string(HostKind kind) {
  switch (kind) {
    case HostKind::pinned:
      return "pinned";
    case HostKind::registered_huge_pages:
      return "registered huge pages";
    case HostKind::write_combined:
      return "write-combined";
  }
  return "";
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : device_(other.device_),
      allocated_(std::move(other.allocated_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      mapped_(std::exchange(other.mapped_, false)),
      registered_(std::exchange(other.registered_, false)) {}

HostMemory::~HostMemory() {
  if (registered_) device_->driver().cuMemHostUnregister(data_);
  if (mapped_) munmap(data_, bytes_);
}

Result<HostMemory> HostMemory::make(const Device& device, HostKind kind, size_t bytes) {
  if (kind == HostKind::registered_huge_pages) return register_pages(device, bytes, 4, nullptr, nullptr);
  HostMemory memory;
  memory.device_ = &device;
  memory.bytes_ = bytes;
  auto buffer = device.allocate_host(bytes, kind == HostKind::write_combined ? CU_MEMHOSTALLOC_WRITECOMBINED : 0);
  if (!buffer.ok()) return buffer.status();
  memory.allocated_ = std::move(buffer.value());
  memory.data_ = memory.allocated_.get();
  std::memset(memory.data_, 1, bytes);
  return Result<HostMemory>(std::move(memory));
}

Result<HostMemory> HostMemory::register_pages(const Device& device, size_t bytes, unsigned threads, double* touch_ns,
                                              double* register_ns) {
  HostMemory memory;
  memory.device_ = &device;
  memory.bytes_ = bytes;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return Status(StatusCode::io_error, fmt::format("mmap of {} bytes: {}", bytes, std::strerror(errno)));
  memory.data_ = data;
  memory.mapped_ = true;
  madvise(data, bytes, MADV_HUGEPAGE);  // where the system refuses, small pages are measured
  const Stopwatch touching;
  touch_with_threads(static_cast<char*>(data), bytes, threads);
  if (touch_ns) *touch_ns = touching.nanoseconds();
  const Stopwatch registering;
  PROBE_CALL(device.driver(), cuMemHostRegister, data, bytes, 0);
  memory.registered_ = true;
  if (register_ns) *register_ns = registering.nanoseconds();
  return Result<HostMemory>(std::move(memory));
}

size_t available_host_bytes() {
  size_t available = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    size_t kibibytes = 0;
    if (!(file >> kibibytes)) break;
    std::getline(file, unit);
    if (key == "MemAvailable:") available = kibibytes << 10;
  }
  for (const auto& [limit_path, used_path] :
       {std::pair{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    const size_t limit = control_group_value(limit_path);
    const size_t used = control_group_value(used_path);
    if (limit > 0) available = std::min(available, limit > used ? limit - used : 0);
  }
  return available;
}

size_t usable_host_bytes() { return available_host_bytes() / 4; }

}  // namespace reprise::probe
