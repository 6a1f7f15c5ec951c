// Error cases: devices and contexts.
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {
namespace {
const CUcontext kNoContext = reinterpret_cast<CUcontext>(0x1230);
}

std::vector<ErrorCase> context_cases() {
  static int number;
  static size_t size;
  static unsigned flags;
  static CUcontext context;
  static CUdevice device;
  static char name[16];
  static CUuuid uuid;
  static unsigned long long id;
  return {
    CASE(cuInit, "flags that are not zero", CUDA_ERROR_INVALID_VALUE, 1),
        CASE(cuDriverGetVersion, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuDeviceGetCount, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuDeviceGet, "an ordinal beyond the last", CUDA_ERROR_INVALID_DEVICE, &device, 1000),
        CASE(cuDeviceGet, "a negative ordinal", CUDA_ERROR_INVALID_DEVICE, &device, -1),
        CASE(cuDeviceGet, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 0),
        CASE(cuDeviceGetName, "no such device", CUDA_ERROR_INVALID_DEVICE, name, 16, 1000),
        CASE(cuDeviceGetName, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, 16, g.device),
        CASE(cuDeviceGetUuid, "no such device", CUDA_ERROR_INVALID_DEVICE, &uuid, 1000),
        CASE(cuDeviceTotalMem, "no such device", CUDA_ERROR_INVALID_DEVICE, &size, 1000),
        CASE(cuDeviceTotalMem, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, g.device),
        CASE(cuDeviceGetAttribute, "no such device", CUDA_ERROR_INVALID_DEVICE, &number, CU_DEVICE_ATTRIBUTE_WARP_SIZE,
             1000),
        CASE(cuDeviceGetAttribute, "no such attribute", CUDA_ERROR_INVALID_VALUE, &number,
             static_cast<CUdevice_attribute>(100000), g.device),
        CASE(cuDeviceGetAttribute, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr,
             CU_DEVICE_ATTRIBUTE_WARP_SIZE, g.device),
        CASE(cuDeviceGetPCIBusId, "no such device", CUDA_ERROR_INVALID_DEVICE, name, 16, 1000),
        CASE(cuDeviceCanAccessPeer, "no such device", CUDA_ERROR_INVALID_DEVICE, &number, g.device, 1000),
        CASE(cuDevicePrimaryCtxRetain, "no such device", CUDA_ERROR_INVALID_DEVICE, &context, 1000),
        CASE(cuDevicePrimaryCtxRetain, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, g.device),
        CASE(cuDevicePrimaryCtxRelease, "no such device", CUDA_ERROR_INVALID_DEVICE, 1000),
        CASE(cuDevicePrimaryCtxRelease, "more often than retained", CUDA_ERROR_INVALID_CONTEXT, g.device),
        CASE(cuDevicePrimaryCtxReset, "no such device", CUDA_ERROR_INVALID_DEVICE, 1000),
        CASE(cuDevicePrimaryCtxGetState, "no such device", CUDA_ERROR_INVALID_DEVICE, 1000, &flags, &number),
        CASE(cuDevicePrimaryCtxSetFlags, "unknown flags", CUDA_ERROR_INVALID_VALUE, g.device, 0x80000000u),
        CASE(cuCtxCreate, "no such device", CUDA_ERROR_INVALID_DEVICE, &context, nullptr, 0, 1000),
        CASE(cuCtxCreate, "unknown flags", CUDA_ERROR_INVALID_VALUE, &context, nullptr, 0x80000000u, g.device),
        CASE(cuCtxCreate, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, nullptr, 0, g.device),
        CASE_SIM(cuCtxDestroy, "no context", CUDA_ERROR_INVALID_CONTEXT, kNoContext),
        CASE(cuCtxDestroy, "the null context", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE_SIM(cuCtxSetCurrent, "no context", CUDA_ERROR_INVALID_CONTEXT, kNoContext),
        CASE(cuCtxPushCurrent, "the null context", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuCtxGetCurrent, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuCtxGetDevice, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE_DO(cuCtxGetDevice, "no current context", CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSetCurrent)(nullptr);
                return CU(cuCtxGetDevice)(&device);),
        CASE_DO(
            cuCtxPopCurrent, "no current context", CUDA_ERROR_INVALID_CONTEXT,
            while (CU(cuCtxPopCurrent)(&context) == CUDA_SUCCESS) {} return CU(cuCtxPopCurrent)(&context);),
        CASE_DO(cuCtxSynchronize, "no current context", CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSetCurrent)(nullptr);
                return CU(cuCtxSynchronize)();),
        CASE(cuCtxGetId, "no place for the answer", CUDA_ERROR_INVALID_VALUE, g.context, nullptr),
        CASE_SIM(cuCtxGetId, "no context", CUDA_ERROR_INVALID_CONTEXT, kNoContext, &id),
        CASE(cuCtxGetLimit, "no such limit", CUDA_ERROR_INVALID_VALUE, &size, static_cast<CUlimit>(10000)),
        CASE(cuCtxGetLimit, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr, CU_LIMIT_STACK_SIZE),
        CASE(cuCtxSetLimit, "no such limit", CUDA_ERROR_INVALID_VALUE, static_cast<CUlimit>(10000), 1),
        CASE(cuCtxSetCacheConfig, "no such preference", CUDA_ERROR_INVALID_VALUE, static_cast<CUfunc_cache>(99)),
        CASE(cuCtxGetFlags, "no place for the answer", CUDA_ERROR_INVALID_VALUE, nullptr),
        CASE(cuCtxEnablePeerAccess, "unknown flags", CUDA_ERROR_INVALID_VALUE, g.context, 1),
        CASE(cuCtxEnablePeerAccess, "the current context", CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, g.context, 0),
  };
}

}  // namespace reprise::sim_test
