// A device with its primary context and the probe's kernels, and owners of what is allocated on it. Every owner
// releases in its destructor, so a section that stops anywhere leaves nothing behind. Callers: the sections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/lab/probe/measure/driver.h"
#include "tools/lab/probe/measure/limit.h"

namespace reprise::probe {

// Moves a handle and its release function; `Derived` gives destroy().
template <typename Handle>
class Owner {
 public:
  using Release = CUresult (*)(Handle);
  Owner() = default;
  Owner(Handle handle, Release release) : handle_(handle), release_(release) {}
  Owner(Owner&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), release_(std::exchange(other.release_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (release_) release_(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
  Release release_ = nullptr;
};

using DeviceBuffer = Owner<CUdeviceptr>;
using HostBuffer = Owner<void*>;
using Stream = Owner<CUstream>;
using Event = Owner<CUevent>;

class Device {
 public:
  // not_found: no device. The kernels are loaded, too; a device that cannot run them is an error.
  static Result<Device> open(const Driver& driver, int ordinal = 0);
  Device(Device&& other) noexcept;
  Device& operator=(Device&&) = delete;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const Driver& driver() const { return *driver_; }
  CUdevice handle() const { return device_; }
  CUcontext context() const { return context_; }
  const std::string& name() const { return name_; }
  uint64_t total_bytes() const { return total_bytes_; }
  int attribute(CUdevice_attribute attribute) const;  // 0 where the driver does not know it
  // What the probe may use: at most half of what is free now.
  uint64_t usable_bytes() const;

  Result<DeviceBuffer> allocate(size_t bytes) const;
  Result<HostBuffer> allocate_host(size_t bytes, unsigned flags = 0) const;  // page-locked
  Result<Stream> make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) const;
  Result<Event> make_event(unsigned flags = CU_EVENT_DEFAULT) const;
  Result<CUfunction> kernel(const char* name) const;  // belongs to the device

  // Makes the context current on the calling thread.
  Status make_current() const;
  Status synchronize() const;

 private:
  Device() = default;
  const Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::string name_;
  uint64_t total_bytes_ = 0;
};

// The probe's kernels (kernels.cu) as the driver takes them: a fat binary of cubin and PTX.
const void* kernel_image();

// Launches with up to a handful of by-value arguments.
template <typename... Arguments>
CUresult launch(const Device& device, CUfunction function, unsigned grid, unsigned block, CUstream stream,
                Arguments... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
  return device.driver().cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, pointers, nullptr);
}

// Time on the device between two events around `work` on `stream`, nanoseconds; waits for it. `work` returns Status.
template <typename Work>
Result<double> device_time(const Device& device, CUstream stream, Work&& work) {
  const Driver& driver = device.driver();
  auto begin = device.make_event();
  auto end = device.make_event();
  if (!begin.ok()) return begin.status();
  if (!end.ok()) return end.status();
  PROBE_CALL(driver, cuEventRecord, begin.value().get(), stream);
  PROBE_TRY(work());
  PROBE_CALL(driver, cuEventRecord, end.value().get(), stream);
  PROBE_CALL(driver, cuEventSynchronize, end.value().get());
  float milliseconds = 0;
  PROBE_CALL(driver, cuEventElapsedTime, &milliseconds, begin.value().get(), end.value().get());
  return static_cast<double>(milliseconds) * 1e6;
}

// For samples that `once` below gathers itself: takes out those of the warm-up.
template <typename... Samples>
void drop_warm_up(Samples&... samples) {
  ((samples.empty() ? void() : void(samples.erase(samples.begin()))), ...);
}

// Calls `once` (returns Result<double>) up to `repeats` times after one warm-up, until `limit`; keeps the samples.
template <typename Once>
Status repeat(const Limit& limit, unsigned repeats, std::vector<double>& samples, Once&& once) {
  for (unsigned i = 0; i <= repeats; ++i) {
    if (limit.over() && i > 1) break;
    const Result<double> sample = once();
    if (!sample.ok()) return sample.status();
    if (i > 0) samples.push_back(sample.value());
  }
  return Status::success();
}

}  // namespace reprise::probe
