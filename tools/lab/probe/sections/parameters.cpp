// Section 6: what the driver tells about kernel parameters, on which handles; where a TMA descriptor keeps its address;
// and, through the counting shim, how many library kernels have parameter information and carry device pointers, and
// what frameworks' allocators ask of the driver.
#include <fmt/format.h>

#include <cstring>

#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/subjects/allocators.h"
#include "tools/lab/probe/subjects/counted_programs.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

Json layout(const Driver& driver, CUfunction function, CUkernel kernel) {
  Json list = Json::array();
  for (size_t i = 0; i < 64; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    const CUresult result = kernel ? driver.cuKernelGetParamInfo(kernel, i, &offset, &bytes)
                                   : driver.cuFuncGetParamInfo(function, i, &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return list;
    if (result != CUDA_SUCCESS) return check(driver, result, "answers").message();
    list.push_back({offset, bytes});
  }
  return list;
}

// [offset, bytes] of every parameter of kernels whose layouts are known from their source.
Status own_layouts(SectionContext& context) {
  const Driver& driver = context.driver;
  if (!driver.cuFuncGetParamInfo || !driver.cuKernelGetParamInfo)
    return {StatusCode::unsupported, "this driver has no parameter information"};
  CUlibrary library = nullptr;
  PROBE_CALL(driver, cuLibraryLoadData, &library, kernel_image(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  const Owner<CUlibrary> owner(library, driver.cuLibraryUnload);
  for (const char* name : {"probe_empty", "probe_fill", "probe_large_parameters", "probe_aligned_parameter"}) {
    const auto function = context.device.kernel(name);
    CUkernel kernel = nullptr;
    if (!function.ok()) return function.status();
    PROBE_CALL(driver, cuLibraryGetKernel, &kernel, library, name);
    context.report.fact(fmt::format("{} as CUfunction", name), layout(driver, function.value(), nullptr));
    context.report.fact(fmt::format("{} as CUkernel", name), layout(driver, nullptr, kernel));
  }
  return Status::success();
}

// Each in a process of its own: the driver may not survive a handle of the wrong kind.
Status wrong_kinds(SectionContext& context) {
  for (const char* name : {"function-as-kernel", "kernel-as-function"}) {
    const auto outcome =
        run_command({{own_path(), "--check", name, "--device", std::to_string(context.options.device)}, {}, 20});
    if (!outcome.ok()) return outcome.status();
    const Json answer = Json::parse(last_line(outcome.value().output), nullptr, false);
    context.report.fact(name, answer.is_object()
                                  ? answer
                                  : Json(fmt::format("the process ended with {}: {}", outcome.value().exit_code,
                                                     last_line(outcome.value().error_output))));
  }
  return Status::success();
}

// Encodes descriptors of two addresses that differ in every byte they may, and looks where the 128 bytes differ.
Status tensor_map(SectionContext& context) {
  const Device& device = context.device;
  auto buffer = device.allocate(size_t{1} << 20);
  if (!buffer.ok()) return buffer.status();
  const CUdeviceptr base = buffer.value().get();
  Json found = Json::array();
  Json differing = Json::array();
  CUtensorMap maps[2];
  for (int i = 0; i < 2; ++i) {
    std::memset(&maps[i], 0, sizeof(maps[i]));
    const CUdeviceptr address = base + (i == 0 ? 0 : 0x12340);
    const cuuint64_t dimensions[] = {64, 64};
    const cuuint64_t strides[] = {256};
    const cuuint32_t box[] = {32, 8};
    const cuuint32_t steps[] = {1, 1};
    PROBE_CALL(context.driver, cuTensorMapEncodeTiled, &maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
               reinterpret_cast<void*>(address), dimensions, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&maps[i]);
    for (size_t at = 0; at + 8 <= sizeof(CUtensorMap); ++at) {
      uint64_t value = 0;
      std::memcpy(&value, bytes + at, sizeof(value));
      if (value == address || (value & 0xffff'ffff'ffff) == address)
        found.push_back({{"descriptor", i}, {"byte", at}, {"exact_8_bytes", value == address}});
    }
  }
  for (size_t at = 0; at < sizeof(CUtensorMap); ++at) {
    if (reinterpret_cast<const char*>(&maps[0])[at] != reinterpret_cast<const char*>(&maps[1])[at])
      differing.push_back(at);
  }
  context.report.fact("address in CUtensorMap", Json{{"found_at", found}, {"bytes_that_differ", differing}});
  return Status::success();
}

}  // namespace

void measure_parameters(SectionContext& context) {
  attempt(context, "own kernels", own_layouts);
  attempt(context, "handles of the wrong kind", wrong_kinds);
  attempt(context, "tensor map", tensor_map);
  attempt(context, "library kernels", report_library_parameters);
  attempt(context, "allocators", report_allocators);
}

}  // namespace reprise::probe
