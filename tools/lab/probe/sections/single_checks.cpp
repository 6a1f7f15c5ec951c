#include "tools/lab/probe/sections/single_checks.h"

#include <fmt/format.h>

#include <array>

#include "tools/lab/probe/measure/mapping.h"
#include "tools/lab/probe/output/report.h"

namespace reprise::probe {
namespace {

using Check = Result<Json> (*)(const Device&);

// Writes through a mapping that allows reading only.
Result<Json> check_read_only(const Device& device) {
  const auto bytes = granularity(device, device_memory(device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!bytes.ok()) return bytes.status();
  auto chunk = make_chunk(device, device_memory(device), bytes.value());
  if (!chunk.ok()) return chunk.status();
  auto range = AddressRange::reserve(device, bytes.value());
  if (!range.ok()) return range.status();
  PROBE_TRY(range.value().map(chunk.value(), bytes.value()));
  const Status allowed = range.value().allow(0, bytes.value(), CU_MEM_ACCESS_FLAGS_PROT_READ);
  if (!allowed.ok()) return Json{{"honoured", nullptr}, {"cuMemSetAccess", allowed.message()}};
  const auto kernel = device.kernel("probe_write");
  if (!kernel.ok()) return kernel.status();
  const CUresult launched = launch(device, kernel.value(), 1, 1, nullptr, range.value().address(), uint32_t{1});
  const Status status =
      launched == CUDA_SUCCESS ? device.synchronize() : check(device.driver(), launched, "cuLaunchKernel");
  return Json{{"honoured", !status.ok()}, {"write_answered", status.ok() ? "success" : status.message()}};
}

// A number of launches that is known: what the counting shim must see.
Result<Json> check_launches(const Device& device) {
  constexpr unsigned kLaunches = 1000;
  const auto empty = device.kernel("probe_empty");
  if (!empty.ok()) return empty.status();
  for (unsigned i = 0; i < kLaunches; ++i) {
    PROBE_TRY(check(device.driver(), launch(device, empty.value(), 1, 32, nullptr), "cuLaunchKernel"));
  }
  PROBE_TRY(device.synchronize());
  return Json{{"launches", kLaunches}};
}

Result<Json> parameter_info(const Driver& driver, bool of_kernel, void* handle) {
  Json list = Json::array();
  for (size_t i = 0; i < 64; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    const CUresult result = of_kernel ? driver.cuKernelGetParamInfo(static_cast<CUkernel>(handle), i, &offset, &bytes)
                                      : driver.cuFuncGetParamInfo(static_cast<CUfunction>(handle), i, &offset, &bytes);
    if (result != CUDA_SUCCESS) {
      return Json{{"parameters", list}, {"ended_with", check(driver, result, "").message().substr(2)}};
    }
    list.push_back({{"offset", offset}, {"bytes", bytes}});
  }
  return Json{{"parameters", list}, {"ended_with", "nothing: 64 answers"}};
}

// Asks about a handle of the other kind; may crash inside the driver.
Result<Json> check_function_as_kernel(const Device& device) {
  const auto function = device.kernel("probe_fill");
  if (!function.ok()) return function.status();
  if (!device.driver().cuKernelGetParamInfo) return Status(StatusCode::unsupported, "no cuKernelGetParamInfo");
  return parameter_info(device.driver(), true, function.value());
}

Result<Json> check_kernel_as_function(const Device& device) {
  const Driver& driver = device.driver();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  PROBE_CALL(driver, cuLibraryLoadData, &library, kernel_image(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  PROBE_CALL(driver, cuLibraryGetKernel, &kernel, library, "probe_fill");
  if (!driver.cuFuncGetParamInfo) return Status(StatusCode::unsupported, "no cuFuncGetParamInfo");
  return parameter_info(driver, false, kernel);
}

struct NamedCheck {
  const char* name;
  Check check;
};
constexpr std::array<NamedCheck, 4> kChecks = {{{"read-only", check_read_only},
                                                {"launches", check_launches},
                                                {"function-as-kernel", check_function_as_kernel},
                                                {"kernel-as-function", check_kernel_as_function}}};

}  // namespace

int run_single_check(const std::string& name, int ordinal) {
  for (const NamedCheck& named : kChecks) {
    if (name != named.name) continue;
    const auto driver = open_driver();
    if (!driver.ok()) return 3;
    const auto device = Device::open(driver.value(), ordinal);
    if (!device.ok()) return 3;
    const auto answer = named.check(device.value());
    if (!answer.ok()) fmt::print(stderr, "reprise: {}: {}\n", name, answer.status().message());
    if (answer.ok()) fmt::print("{}\n", answer.value().dump());
    return answer.ok() ? 0 : 1;
  }
  fmt::print(stderr, "reprise: no check is called '{}'\n", name);
  return 2;
}

}  // namespace reprise::probe
