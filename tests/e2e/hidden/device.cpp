#include "tests/e2e/hidden/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hidden {
namespace {
constexpr size_t kPinnedBytes = 1 << 20;
}

Device::Device(const std::string& cubin, int streams, bool serial) : serial_(serial) {
  program::leave = std::exit;
  program::open_device();
  module_ = program::load(cubin);
  streams_ = program::streams(streams);
  CHECK(cuMemHostAlloc(&pinned_, kPinnedBytes, 0));
}

Tensor Device::allocate(size_t bytes) { return allocate(bytes, 0, Freeing::at_once); }

Tensor Device::allocate(size_t bytes, int stream, Freeing freeing) {
  Tensor tensor{0, bytes, -1, freeing == Freeing::on_stream};
  if (tensor.pooled) {
    CHECK(cuMemAllocAsync(&tensor.address, bytes, this->stream(stream)));
    tensor.last_stream = stream;
  } else {
    CHECK(cuMemAlloc(&tensor.address, bytes));
  }
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return tensor;
}

Tensor Device::zeros(size_t bytes, int stream) {
  Tensor tensor = allocate(bytes);
  use(&tensor, stream);
  CHECK(cuMemsetD8Async(tensor.address, 0, bytes, this->stream(stream)));
  return tensor;
}

void Device::free(Tensor* tensor, Freeing freeing) {
  if (tensor->address == 0) return;
  const int last = std::max(0, tensor->last_stream);
  if (freeing == Freeing::synchronized) CHECK(cuStreamSynchronize(stream(last)));
  if (tensor->pooled) {
    CHECK(cuMemFreeAsync(tensor->address, stream(last)));
  } else {
    CHECK(cuMemFree(tensor->address));
  }
  live_ -= tensor->bytes;
  *tensor = {};
}

void Device::use(Tensor* tensor, int stream) {
  if (serial_) synchronize();
  if (tensor->last_stream >= 0 && tensor->last_stream != stream) {
    program::order(this->stream(tensor->last_stream), this->stream(stream));
  }
  tensor->last_stream = stream;
}

void Device::submit(const char* kernel, unsigned blocks, int stream, void** parameters) {
  CUfunction& function = functions_[kernel];
  if (function == nullptr) CHECK(cuModuleGetFunction(&function, module_, kernel));
  CHECK(cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, this->stream(stream), parameters, nullptr));
}

std::vector<uint32_t> Device::read(Tensor* tensor, bool polled) {
  use(tensor, 0);
  std::vector<uint32_t> content(tensor->bytes / 4);
  if (!polled || tensor->bytes > kPinnedBytes) {
    CHECK(cuMemcpyDtoH(content.data(), tensor->address, tensor->bytes));
    return content;
  }
  CHECK(cuMemcpyDtoHAsync(pinned_, tensor->address, tensor->bytes, stream(0)));
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, 0));
  CHECK(cuEventRecord(event, stream(0)));
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
  }
  CHECK(cuEventSynchronize(event));
  CHECK(cuEventDestroy(event));
  std::memcpy(content.data(), pinned_, tensor->bytes);
  return content;
}

}  // namespace hidden
