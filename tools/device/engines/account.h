// What the processes that share a device (REPRISE_SIM_SHARED) hold of its memory: one file that they all map, a slot
// for each process, and a lock that outlives who holds it. A process that has ended holds nothing. Caller: device.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::sim {

struct DeviceProcess {
  unsigned number = 0;
  uint64_t bytes = 0;
};

class SharedAccount {
 public:
  // The account in this file, made if need be. nullptr, and a line on stderr: it cannot be used.
  static SharedAccount* open(const char* path) noexcept;

  // Takes `bytes` for this process; false when all processes together would hold more than `capacity`.
  bool charge(int device, uint64_t bytes, uint64_t capacity) noexcept;
  void refund(int device, uint64_t bytes) noexcept;
  // What all processes hold.
  uint64_t used(int device) noexcept;
  // So many contexts of this process more on the device.
  void add_contexts(int device, int change) noexcept;
  // The processes that have one.
  std::vector<DeviceProcess> processes(int device) noexcept;

 private:
  struct File;
  explicit SharedAccount(File* file) : file_(file) {}
  uint64_t used_locked(int device) noexcept;
  void lock() noexcept;
  void unlock() noexcept;
  File* file_;
  int slot_ = -1;
};

}  // namespace reprise::sim
