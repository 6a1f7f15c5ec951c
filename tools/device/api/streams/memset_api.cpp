// cuMemsetD8 and its kin. Like the real ones they are asynchronous with respect to the host.
#include "tools/device/memory/copy.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

CUresult set(Context& context, CUstream stream, const MemsetShape& shape) {
  SIM_TRY(check_memset(shape));
  if (shape.width == 0 || shape.height == 0) {
    std::shared_ptr<Stream> target;
    return find_work_stream(context, stream, &target);
  }
  return dispatch(context, stream, memset_operation(shape));
}

}  // namespace

extern "C" {

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, 0, uc, 1, N, 1});
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, dstPitch, uc, 1, Width, Height});
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, 0, us, 2, N, 1});
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, dstPitch, us, 2, Width, Height});
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, 0, ui, 4, N, 1});
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, nullptr, {dstDevice, dstPitch, ui, 4, Width, Height});
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, 0, uc, 1, N, 1});
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, dstPitch, uc, 1, Width, Height});
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, 0, us, 2, N, 1});
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, dstPitch, us, 2, Width, Height});
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, 0, ui, 4, N, 1});
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                            CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return set(*context, hStream, {dstDevice, dstPitch, ui, 4, Width, Height});
}

}  // extern "C"
