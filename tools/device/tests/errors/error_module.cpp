// Error cases: modules, libraries, functions, launches, tensor maps.
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {
namespace {

CUresult launch(CUfunction function, unsigned grid, unsigned block, unsigned shared, CUstream stream, void** parameters,
                void** extra) {
  return CU(cuLaunchKernel)(function, grid, 1, 1, block, 1, 1, shared, stream, parameters, extra);
}

struct Tiled {
  alignas(64) CUtensorMap map;
  cuuint32_t rank = 2;
  uint64_t address = 0;
  cuuint64_t sizes[2] = {64, 64};
  cuuint64_t strides[1] = {256};
  cuuint32_t box[2] = {32, 32};
  cuuint32_t steps[2] = {1, 1};
  CUresult encode(const Good& g) {
    return CU(cuTensorMapEncodeTiled)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank,
                                      reinterpret_cast<void*>(g.memory + address), sizes, strides, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

}  // namespace

std::vector<ErrorCase> module_cases() {
  static CUmodule module;
  static CUlibrary library;
  static CUfunction function;
  static CUkernel kernel;
  static CUdeviceptr address;
  static size_t size;
  static int number;
  static const char* name;
  static const char kNonsense[64] = "this is no image of any kind";
  return {
    CASE(cuModuleLoad, "no such file", CUDA_ERROR_FILE_NOT_FOUND, &module, "/nonexistent/file.cubin"),
        CASE(cuModuleLoadData, "no image", CUDA_ERROR_INVALID_VALUE, &module, nullptr),
        CASE(cuModuleLoadData, "nonsense", CUDA_ERROR_INVALID_IMAGE, &module, kNonsense),
        CASE(cuModuleLoadData, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, kNonsense),
        CASE_SIM(cuModuleUnload, "no module", CUDA_ERROR_INVALID_HANDLE, reinterpret_cast<CUmodule>(0x1230)),
        CASE(cuModuleGetFunction, "no such kernel", CUDA_ERROR_NOT_FOUND, &function, g.module, "no_such_kernel"),
        CASE(cuModuleGetFunction, "no name", CUDA_ERROR_INVALID_VALUE, &function, g.module, nullptr),
        CASE(cuModuleGetFunction, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, g.module, "empty"),
        CASE(cuModuleGetGlobal, "no such variable", CUDA_ERROR_NOT_FOUND, &address, &size, g.module,
             "no_such_variable"),
        CASE(cuModuleGetGlobal, "no name", CUDA_ERROR_INVALID_VALUE, &address, &size, g.module, nullptr),
        CASE(cuLibraryLoadFromFile, "no such file", CUDA_ERROR_FILE_NOT_FOUND, &library, "/nonexistent/file.cubin",
             nullptr, nullptr, 0, nullptr, nullptr, 0),
        CASE(cuLibraryLoadData, "no image", CUDA_ERROR_INVALID_VALUE, &library, nullptr, nullptr, nullptr, 0, nullptr,
             nullptr, 0),
        CASE_DO(cuLibraryGetKernel, "no such kernel", CUDA_ERROR_NOT_FOUND,
                CU(cuLibraryLoadFromFile)(&library, cubin(), nullptr, nullptr, 0, nullptr, nullptr, 0);
                const CUresult answer = CU(cuLibraryGetKernel)(&kernel, library, "no_such_kernel");
                CU(cuLibraryUnload)(library); return answer;),
        CASE_SIM(cuLibraryUnload, "no library", CUDA_ERROR_INVALID_HANDLE, reinterpret_cast<CUlibrary>(0x1230)),
        CASE_SIM(cuKernelGetFunction, "no kernel", CUDA_ERROR_INVALID_HANDLE, &function,
                 reinterpret_cast<CUkernel>(0x1230)),
        CASE(cuFuncGetParamInfo, "beyond the last parameter", CUDA_ERROR_INVALID_VALUE, g.one_parameter, 1, &size,
             &size),
        CASE(cuFuncGetParamInfo, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.one_parameter, 0, nullptr,
             nullptr),
        CASE(cuFuncGetName, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, g.function),
        CASE_SIM(cuFuncGetName, "no function", CUDA_ERROR_INVALID_HANDLE, &name, reinterpret_cast<CUfunction>(0x1230)),
        CASE(cuFuncGetAttribute, "no such attribute", CUDA_ERROR_INVALID_VALUE, &number,
             static_cast<CUfunction_attribute>(1000), g.function),
        CASE(cuFuncSetAttribute, "an attribute that cannot be set", CUDA_ERROR_INVALID_VALUE, g.function,
             CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
        CASE(cuFuncSetAttribute, "more shared memory than there is", CUDA_ERROR_INVALID_VALUE, g.function,
             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
        CASE(cuOccupancyMaxActiveBlocksPerMultiprocessor, "no threads", CUDA_ERROR_INVALID_VALUE, &number, g.function,
             0, 0),
        CASE(cuLaunchKernel, "the null function", CUDA_ERROR_INVALID_HANDLE, nullptr, 1, 1, 1, 1, 1, 1, 0, g.stream,
             nullptr, nullptr),
        CASE_DO(cuLaunchKernel, "an empty grid", CUDA_ERROR_INVALID_VALUE,
                return launch(g.function, 0, 1, 0, g.stream, nullptr, nullptr);),
        CASE_DO(cuLaunchKernel, "an empty block", CUDA_ERROR_INVALID_VALUE,
                return launch(g.function, 1, 0, 0, g.stream, nullptr, nullptr);),
        CASE_DO(cuLaunchKernel, "too many threads", CUDA_ERROR_INVALID_VALUE,
                return launch(g.function, 1, 2048, 0, g.stream, nullptr, nullptr);),
        CASE(cuLaunchKernel, "a grid that is too high", CUDA_ERROR_INVALID_VALUE, g.function, 1, 65536, 1, 1, 1, 1, 0,
             g.stream, nullptr, nullptr),
        CASE_DO(cuLaunchKernel, "too much shared memory", CUDA_ERROR_INVALID_VALUE,
                return launch(g.function, 1, 1, 1u << 20, g.stream, nullptr, nullptr);),
        CASE_DO_SIM(cuLaunchKernel, "parameters in both forms", CUDA_ERROR_INVALID_VALUE, void* nothing = nullptr;
                    void* parameters[] = {&nothing}; void* extra[] = {CU_LAUNCH_PARAM_END};
                    return launch(g.one_parameter, 1, 1, 0, g.stream, parameters, extra);),
        CASE(cuLaunchKernelEx, "no configuration", CUDA_ERROR_INVALID_VALUE, nullptr, g.function, nullptr, nullptr),
        CASE(cuLaunchCooperativeKernel, "more blocks than fit at once", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
             g.function, 1u << 20, 1, 1, 1024, 1, 1, 0, g.stream, nullptr),
        CASE_DO(cuTensorMapEncodeTiled, "no dimensions", CUDA_ERROR_INVALID_VALUE, Tiled t; t.rank = 0;
                return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, Tiled t;
                t.address = 8; return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "a stride that is not aligned", CUDA_ERROR_INVALID_VALUE, Tiled t;
                t.strides[0] = 260; return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "a box that is too wide", CUDA_ERROR_INVALID_VALUE, Tiled t; t.box[0] = 260;
                return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "a box of three elements", CUDA_ERROR_INVALID_VALUE, Tiled t; t.box[0] = 3;
                return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "an element stride of nine", CUDA_ERROR_INVALID_VALUE, Tiled t; t.steps[1] = 9;
                return t.encode(g);),
        CASE_DO(cuTensorMapEncodeTiled, "nothing at all", CUDA_SUCCESS, Tiled t; return t.encode(g);),
        CASE_DO(cuTensorMapReplaceAddress, "an address that is not aligned", CUDA_ERROR_INVALID_VALUE, Tiled t;
                t.encode(g); return CU(cuTensorMapReplaceAddress)(&t.map, reinterpret_cast<void*>(g.memory + 8));),
  };
}

}  // namespace reprise::sim_test
