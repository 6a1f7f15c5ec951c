#include "tests/e2e/hidden/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hidden {
namespace {
constexpr size_t kPinnedBytes = 1 << 20;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", call, name == nullptr ? "?" : name);
  std::exit(kFailed);
}

Device::Device(const std::string& cubin, int streams, bool serial) : serial_(serial) {
  HIDDEN_CHECK(cuInit(0));
  CUcontext context = nullptr;
  HIDDEN_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  HIDDEN_CHECK(cuCtxSetCurrent(context));
  HIDDEN_CHECK(cuModuleLoad(&module_, cubin.c_str()));
  for (int i = 0; i < streams; ++i) {
    CUstream stream = nullptr;  // the first one is the default stream
    if (i > 0) HIDDEN_CHECK(cuStreamCreate(&stream, i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    streams_.push_back(stream);
  }
  HIDDEN_CHECK(cuMemHostAlloc(&pinned_, kPinnedBytes, 0));
}

Tensor Device::allocate(size_t bytes) { return allocate(bytes, 0, Freeing::at_once); }

Tensor Device::allocate(size_t bytes, int stream, Freeing freeing) {
  Tensor tensor{0, bytes, -1, freeing == Freeing::on_stream};
  if (tensor.pooled) {
    HIDDEN_CHECK(cuMemAllocAsync(&tensor.address, bytes, this->stream(stream)));
    tensor.last_stream = stream;
  } else {
    HIDDEN_CHECK(cuMemAlloc(&tensor.address, bytes));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return tensor;
}

Tensor Device::zeros(size_t bytes, int stream) {
  Tensor tensor = allocate(bytes);
  use(&tensor, stream);
  HIDDEN_CHECK(cuMemsetD8Async(tensor.address, 0, bytes, this->stream(stream)));
  return tensor;
}

void Device::free(Tensor* tensor, Freeing freeing) {
  if (tensor->address == 0) return;
  const int last = std::max(0, tensor->last_stream);
  if (freeing == Freeing::synchronized) HIDDEN_CHECK(cuStreamSynchronize(stream(last)));
  if (tensor->pooled) {
    HIDDEN_CHECK(cuMemFreeAsync(tensor->address, stream(last)));
  } else {
    HIDDEN_CHECK(cuMemFree(tensor->address));
  }
  live_ -= tensor->bytes;
  *tensor = {};
}

void Device::use(Tensor* tensor, int stream) {
  if (serial_) synchronize();
  if (tensor->last_stream >= 0 && tensor->last_stream != stream) {
    CUevent event = nullptr;
    HIDDEN_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    HIDDEN_CHECK(cuEventRecord(event, this->stream(tensor->last_stream)));
    HIDDEN_CHECK(cuStreamWaitEvent(this->stream(stream), event, 0));
    HIDDEN_CHECK(cuEventDestroy(event));
  }
  tensor->last_stream = stream;
}

void Device::submit(const char* kernel, unsigned blocks, int stream, void** parameters) {
  CUfunction& function = functions_[kernel];
  if (function == nullptr) HIDDEN_CHECK(cuModuleGetFunction(&function, module_, kernel));
  HIDDEN_CHECK(cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, this->stream(stream), parameters, nullptr));
}

std::vector<uint32_t> Device::read(Tensor* tensor, bool polled) {
  use(tensor, 0);
  std::vector<uint32_t> content(tensor->bytes / 4);
  if (!polled || tensor->bytes > kPinnedBytes) {
    HIDDEN_CHECK(cuMemcpyDtoH(content.data(), tensor->address, tensor->bytes));
    return content;
  }
  HIDDEN_CHECK(cuMemcpyDtoHAsync(pinned_, tensor->address, tensor->bytes, stream(0)));
  CUevent event = nullptr;
  HIDDEN_CHECK(cuEventCreate(&event, 0));
  HIDDEN_CHECK(cuEventRecord(event, stream(0)));
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
  }
  HIDDEN_CHECK(cuEventSynchronize(event));
  HIDDEN_CHECK(cuEventDestroy(event));
  std::memcpy(content.data(), pinned_, tensor->bytes);
  return content;
}

}  // namespace hidden
