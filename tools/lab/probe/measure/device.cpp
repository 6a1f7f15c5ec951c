#include "tools/lab/probe/measure/device.h"

#include <algorithm>

extern "C" const unsigned char reprise_probe_kernels[];

namespace reprise::probe {

const void* kernel_image() { return reprise_probe_kernels; }

Device::Device(Device&& other) noexcept
    : driver_(other.driver_),
      device_(other.device_),
      context_(std::exchange(other.context_, nullptr)),
      module_(std::exchange(other.module_, nullptr)),
      name_(std::move(other.name_)),
      total_bytes_(other.total_bytes_) {}

Device::~Device() {
  if (!context_) return;
  if (module_) driver_->cuModuleUnload(module_);
  driver_->cuDevicePrimaryCtxRelease(device_);
}

Result<Device> Device::open(const Driver& driver, int ordinal) {
  Device device;
  device.driver_ = &driver;
  int count = 0;
  for (const auto& [what, result] :
       {std::pair{"cuInit", driver.cuInit(0)}, {"cuDeviceGetCount", driver.cuDeviceGetCount(&count)}}) {
    if (result == CUDA_SUCCESS) continue;
    return Status(StatusCode::not_found, "the driver has no device: " + check(driver, result, what).message());
  }
  if (count <= ordinal) return Status(StatusCode::not_found, "the driver has no device " + std::to_string(ordinal));
  PROBE_CALL(driver, cuDeviceGet, &device.device_, ordinal);
  char name[256] = {};
  PROBE_CALL(driver, cuDeviceGetName, name, sizeof(name), device.device_);
  device.name_ = name;
  size_t total = 0;
  PROBE_CALL(driver, cuDeviceTotalMem, &total, device.device_);
  device.total_bytes_ = total;
  PROBE_CALL(driver, cuDevicePrimaryCtxRetain, &device.context_, device.device_);
  PROBE_TRY(device.make_current());
  PROBE_CALL(driver, cuModuleLoadData, &device.module_, kernel_image());
  return Result<Device>(std::move(device));
}

int Device::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  return driver_->cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
}

uint64_t Device::usable_bytes() const {
  size_t free = 0;
  size_t total = 0;
  return driver_->cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free / 2 : 0;
}

Result<DeviceBuffer> Device::allocate(size_t bytes) const {
  CUdeviceptr pointer = 0;
  PROBE_CALL(*driver_, cuMemAlloc, &pointer, bytes);
  return DeviceBuffer(pointer, driver_->cuMemFree);
}

Result<HostBuffer> Device::allocate_host(size_t bytes, unsigned flags) const {
  void* pointer = nullptr;
  PROBE_CALL(*driver_, cuMemHostAlloc, &pointer, bytes, flags);
  return HostBuffer(pointer, driver_->cuMemFreeHost);
}

Result<Stream> Device::make_stream(unsigned flags) const {
  CUstream stream = nullptr;
  PROBE_CALL(*driver_, cuStreamCreate, &stream, flags);
  return Stream(stream, driver_->cuStreamDestroy);
}

Result<Event> Device::make_event(unsigned flags) const {
  CUevent event = nullptr;
  PROBE_CALL(*driver_, cuEventCreate, &event, flags);
  return Event(event, driver_->cuEventDestroy);
}

Result<CUfunction> Device::kernel(const char* name) const {
  CUfunction function = nullptr;
  if (const CUresult result = driver_->cuModuleGetFunction(&function, module_, name); result != CUDA_SUCCESS) {
    return check(*driver_, result, name);
  }
  return function;
}

Status Device::make_current() const {
  PROBE_CALL(*driver_, cuCtxSetCurrent, context_);
  return Status::success();
}

Status Device::synchronize() const {
  PROBE_CALL(*driver_, cuCtxSynchronize, );
  return Status::success();
}

}  // namespace reprise::probe
