#include <cuda.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

#include "preload/base/config.h"
#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"
#include "preload/driver/resolve.h"
#include "tools/cli/message.h"
#include "tools/cli/sizes.h"
#include "tools/doctor/checks.h"

namespace reprise::tools {
namespace {

std::string error_name(CUresult result) {
  const char* name = nullptr;
  if (driver().cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", static_cast<int>(result));
  return name;
}

CUmemAllocationProp chunk_on(CUdevice device) {
  CUmemAllocationProp properties;
  std::memset(&properties, 0, sizeof properties);
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

// What the replay stands on: one chunk, mapped at two addresses, shows the same bytes at both.
class AliasTrial {
 public:
  explicit AliasTrial(CUdevice device) : device_(device) {}
  ~AliasTrial() {
    if (mapped_ > 0) driver().cuMemUnmap(address_, mapped_);
    if (address_ != 0) driver().cuMemAddressFree(address_, 2 * bytes_);
    if (chunk_ != 0) driver().cuMemRelease(chunk_);
    if (retained_) driver().cuDevicePrimaryCtxRelease(device_);
  }
  AliasTrial(const AliasTrial&) = delete;
  AliasTrial& operator=(const AliasTrial&) = delete;

  // Empty when it works, else which call failed.
  std::string run(size_t granularity) {
    bytes_ = granularity;
    const std::string failed = map();
    return failed.empty() ? compare() : failed;
  }

 private:
  std::string map() {
    CUcontext context = nullptr;
    CUmemAllocationProp properties = chunk_on(device_);
    if (failed("cuDevicePrimaryCtxRetain", driver().cuDevicePrimaryCtxRetain(&context, device_))) return why_;
    retained_ = true;
    if (failed("cuCtxSetCurrent", driver().cuCtxSetCurrent(context))) return why_;
    if (failed("cuMemAddressReserve", driver().cuMemAddressReserve(&address_, 2 * bytes_, 0, 0, 0))) return why_;
    if (failed("cuMemCreate", driver().cuMemCreate(&chunk_, bytes_, &properties, 0))) return why_;
    for (int i = 0; i < 2; ++i) {
      if (failed("cuMemMap", driver().cuMemMap(address_ + mapped_, bytes_, 0, chunk_, 0))) return why_;
      mapped_ += bytes_;
    }
    CUmemAccessDesc access;
    std::memset(&access, 0, sizeof access);
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    failed("cuMemSetAccess", driver().cuMemSetAccess(address_, mapped_, &access, 1));
    return why_;
  }
  std::string compare() {
    const uint32_t written = 0x5ca1ab1e;
    uint32_t read = 0;
    if (failed("cuMemcpyHtoD", driver().cuMemcpyHtoD(address_, &written, sizeof written))) return why_;
    if (failed("cuMemcpyDtoH", driver().cuMemcpyDtoH(&read, address_ + bytes_, sizeof read))) return why_;
    return read == written ? "" : "two views of one chunk differ";
  }
  bool failed(const char* call, CUresult result) {
    if (result == CUDA_SUCCESS) return false;
    why_ = fmt::format("{} failed: {}", call, error_name(result));
    return true;
  }

  CUdevice device_;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle chunk_ = 0;
  bool retained_ = false;
  std::string why_;
};

void check_virtual_memory(CUdevice device, const std::string& name, std::vector<Check>& checks) {
  int supported = 0;
  driver().cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
  const CUmemAllocationProp properties = chunk_on(device);
  size_t granularity = 0;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (supported != 0) {
    result = driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  }
  if (result != CUDA_SUCCESS || granularity == 0) {
    checks.push_back({name + " virtual memory", Finding::missing, "not supported by this device or driver",
                      "a budget needs it; recording works without"});
    return;
  }
  const std::string problem = AliasTrial(device).run(granularity);
  checks.push_back({name + " virtual memory", problem.empty() ? Finding::good : Finding::missing,
                    problem.empty() ? fmt::format("works, chunks of {}", format_bytes(granularity)) : problem,
                    problem.empty() ? "" : "see whether another program holds all memory of the device"});
}

// Offloaded tensors lie in pinned host memory: some containers and virtual machines refuse it.
void check_pinned(CUdevice device, const std::string& name, std::vector<Check>& checks) {
  constexpr size_t kBytes = size_t{16} << 20;
  CUcontext context = nullptr;
  CUresult result = driver().cuDevicePrimaryCtxRetain(&context, device);
  const bool retained = result == CUDA_SUCCESS;
  if (retained) result = driver().cuCtxSetCurrent(context);
  void* memory = nullptr;
  if (result == CUDA_SUCCESS) result = driver().cuMemHostAlloc(&memory, kBytes, CU_MEMHOSTALLOC_PORTABLE);
  if (memory != nullptr) driver().cuMemFreeHost(memory);
  if (retained) driver().cuDevicePrimaryCtxRelease(device);
  const bool works = result == CUDA_SUCCESS;
  checks.push_back(
      {name + " pinned memory", works ? Finding::good : Finding::missing,
       works ? "works"
             : fmt::format("{} of host memory cannot be pinned: {}", format_bytes(kBytes), error_name(result)),
       works ? "" : "what leaves the device lies there: raise the limits (ulimit -l, the container's)"});
}

// Else what other programs take while this one loads code may count as its own.
void check_processes(CUdevice device, const std::string& name, std::vector<Check>& checks) {
  CUcontext context = nullptr;
  if (driver().cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return;
  const bool told = driver().cuCtxSetCurrent(context) == CUDA_SUCCESS && own_bytes_follow(device);
  driver().cuDevicePrimaryCtxRelease(device);
  checks.push_back(
      {name + " memory by process", told ? Finding::good : Finding::note,
       told ? "told" : "not told by NVML, so other programs' may count as a program's own while it loads code",
       told ? ""
            : "where programs share the device: libnvidia-ml.so.1 has to be there, and in a container --pid=host"});
}

void check_one(int index, std::vector<Check>& checks) {
  CUdevice device = 0;
  if (driver().cuDeviceGet(&device, index) != CUDA_SUCCESS) return;
  char model[128] = {};
  size_t bytes = 0;
  int major = 0;
  int minor = 0;
  driver().cuDeviceGetName(model, sizeof model - 1, device);
  driver().cuDeviceTotalMem(&bytes, device);
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  const std::string name = fmt::format("device {}", index);
  checks.push_back({name, Finding::good,
                    fmt::format("{}, {}, compute capability {}.{}", model, format_bytes(bytes), major, minor), ""});
  check_virtual_memory(device, name, checks);
  check_pinned(device, name, checks);
  check_processes(device, name, checks);
}

bool has_driver(std::vector<Check>& checks) {
  if (driver_path() != nullptr) return true;
  const bool named = std::getenv("REPRISE_DRIVER") != nullptr;  // then the problem names that file
  checks.push_back({"driver", Finding::missing,
                    named ? fmt::format("no driver: {}", driver_problem()) : "no driver: libcuda.so.1 is nowhere",
                    "install NVIDIA's driver, one for CUDA 12.4 or newer, or use --device sim"});
  return false;
}

// False when no driver can be asked further.
bool check_driver(std::vector<Check>& checks) {
  if (!has_driver(checks)) return false;
  const char* const path = driver_path();
  const CUresult started = driver().cuInit(0);
  int version = 0;
  driver().cuDriverGetVersion(&version);
  const std::string text = fmt::format("{} (CUDA {}.{}; parameters of kernels are known from 12.4 on)", path,
                                       version / 1000, version % 1000 / 10);
  if (started != CUDA_SUCCESS) {
    checks.push_back({"driver", Finding::missing, fmt::format("{}: cuInit: {}", text, error_name(started)),
                      "see whether a device is there and its kernel module is loaded (nvidia-smi)"});
    return false;
  }
  const bool old = version < 12040;
  checks.push_back({"driver", old ? Finding::note : Finding::good, text,
                    old ? "kernel parameters are only known from CUDA 12.4 on: without them fewer tensors move" : ""});
  return true;
}

}  // namespace

void say_without_driver(bool simulated) {
  std::vector<Check> checks;
  if (simulated || has_driver(checks)) return;
  say(fmt::format("{}; {}. The program is started all the same", checks.back().value, checks.back().advice));
}

std::string why_no_calls(bool simulated) {
  if (disabled()) return "REPRISE_DISABLE is set, so Reprise left the program alone; unset it";
  std::vector<Check> checks;
  if (simulated || check_driver(checks)) return "the program made no CUDA call";
  return fmt::format("{}; {}", checks.back().value, checks.back().advice);
}

void check_device(const std::string& driver_file, std::vector<Check>& checks) {
  if (!driver_file.empty()) setenv("REPRISE_DRIVER", driver_file.c_str(), 1);
  if (!check_driver(checks)) return;
  int count = 0;
  const CUresult counted = driver().cuDeviceGetCount(&count);
  if (counted != CUDA_SUCCESS || count == 0) {
    checks.push_back({"devices", Finding::missing, counted == CUDA_SUCCESS ? "none" : error_name(counted),
                      "see CUDA_VISIBLE_DEVICES and nvidia-smi"});
    return;
  }
  for (int index = 0; index < count; ++index) check_one(index, checks);
}

}  // namespace reprise::tools
