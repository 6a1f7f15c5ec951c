// Host memory that the copy engines can reach, made in the ways a host tier could make it. Caller: section 4.
#pragma once
#include <array>
#include <cstddef>

#include "tools/lab/probe/measure/device.h"

namespace reprise::probe {

enum class HostKind : uint8_t { pinned, registered_huge_pages, write_combined };
inline constexpr std::array<HostKind, 3> kHostKinds = {HostKind::pinned, HostKind::registered_huge_pages,
                                                       HostKind::write_combined};
const char* to_string(HostKind kind);

// Owns page-locked memory of one kind; every page has been touched.
class HostMemory {
 public:
  static Result<HostMemory> make(const Device& device, HostKind kind, size_t bytes);
  // Maps and touches with `threads` threads, then registers. `touch_ns`, `register_ns`: what each step took.
  static Result<HostMemory> register_pages(const Device& device, size_t bytes, unsigned threads, double* touch_ns,
                                           double* register_ns);
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  HostMemory() = default;
  const Device* device_ = nullptr;
  HostBuffer allocated_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool mapped_ = false;
  bool registered_ = false;
};

// What the system and its control group have available of the host's memory; 0 where they do not say.
size_t available_host_bytes();
// What of it the probe may use: a quarter.
size_t usable_host_bytes();

}  // namespace reprise::probe
