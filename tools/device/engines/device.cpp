#include "tools/device/engines/device.h"

#include <unistd.h>

#include "tools/device/base/settings.h"

namespace reprise::sim {
namespace {
Device* devices[64];
std::atomic<int> created{0};

// nullptr: the devices are this process's alone.
SharedAccount* shared_account() noexcept {
  static SharedAccount* const account = settings().shared != nullptr ? SharedAccount::open(settings().shared) : nullptr;
  return account;
}
}  // namespace

Device::Device(int device_ordinal) : ordinal(device_ordinal), capacity_(settings().memory_bytes) {}

bool Device::charge(uint64_t bytes) noexcept {
  SharedAccount* const shared = shared_account();
  if (shared != nullptr && !shared->charge(ordinal, bytes, capacity_)) return false;
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > capacity_ || used > capacity_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  const uint64_t now = used + bytes;
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void Device::refund(uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  if (SharedAccount* const shared = shared_account(); shared != nullptr) shared->refund(ordinal, bytes);
}

uint64_t Device::free() const noexcept {
  SharedAccount* const shared = shared_account();
  return capacity_ - (shared != nullptr ? shared->used(ordinal) : used());
}

bool Device::open_context() noexcept {
  if (!charge(settings().context_bytes)) return false;
  contexts_.fetch_add(1);
  if (SharedAccount* const shared = shared_account(); shared != nullptr) shared->add_contexts(ordinal, 1);
  return true;
}

void Device::close_context() noexcept {
  refund(settings().context_bytes);
  contexts_.fetch_sub(1);
  if (SharedAccount* const shared = shared_account(); shared != nullptr) shared->add_contexts(ordinal, -1);
}

std::vector<DeviceProcess> Device::processes() const {
  if (SharedAccount* const shared = shared_account(); shared != nullptr) return shared->processes(ordinal);
  if (contexts_.load() == 0) return {};
  return {{static_cast<unsigned>(getpid()), used()}};
}

Device* find_device(int ordinal) noexcept {
  return ordinal >= 0 && ordinal < created.load(std::memory_order_acquire) ? devices[ordinal] : nullptr;
}

int device_count() noexcept { return created.load(std::memory_order_acquire); }

void create_devices() {
  const int count = static_cast<int>(settings().devices);
  for (int i = 0; i < count; ++i) devices[i] = new Device(i);
  created.store(count, std::memory_order_release);
}

void HighWater::add(int64_t change) noexcept {
  raise(now_.fetch_add(static_cast<uint64_t>(change)) + static_cast<uint64_t>(change));
}

void HighWater::set(uint64_t value) noexcept {
  now_ = value;
  raise(value);
}

void HighWater::raise(uint64_t now) noexcept {
  uint64_t seen = high_.load();
  while (seen < now && !high_.compare_exchange_weak(seen, now)) {
  }
}

}  // namespace reprise::sim
