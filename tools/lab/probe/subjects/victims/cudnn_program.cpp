// Calls cuDNN: a forward convolution by each algorithm that its fixed-function interface offers here.
#include <cudnn.h>

#include "tools/lab/probe/subjects/victims/library_program.h"

namespace {

constexpr int kBatch = 8, kChannels = 32, kSide = 56, kFilter = 3;
constexpr size_t kImage = size_t{kBatch} * kChannels * kSide * kSide;
constexpr size_t kWeights = size_t{kChannels} * kChannels * kFilter * kFilter;

struct Algorithm {
  const char* name;
  cudnnConvolutionFwdAlgo_t algorithm;
};
constexpr Algorithm kAlgorithms[] = {
    {"convolution, implicit gemm", CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {"convolution, precomputed gemm", CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM},
    {"convolution, winograd", CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED}};

}  // namespace

int main(int argc, char** argv) {
  void* library = victim::open_library("libcudnn.so.9");
  const victim::Device device;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t image = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  victim::expect(VICTIM_FUNCTION(library, cudnnCreate)(&handle), "cudnnCreate");
  victim::expect(VICTIM_FUNCTION(library, cudnnCreateTensorDescriptor)(&image), "cudnnCreateTensorDescriptor");
  victim::expect(VICTIM_FUNCTION(library, cudnnSetTensor4dDescriptor)(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                                                      kBatch, kChannels, kSide, kSide),
                 "cudnnSetTensor4dDescriptor");
  victim::expect(VICTIM_FUNCTION(library, cudnnCreateFilterDescriptor)(&filter), "cudnnCreateFilterDescriptor");
  victim::expect(VICTIM_FUNCTION(library, cudnnSetFilter4dDescriptor)(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                                                      kChannels, kChannels, kFilter, kFilter),
                 "cudnnSetFilter4dDescriptor");
  victim::expect(VICTIM_FUNCTION(library, cudnnCreateConvolutionDescriptor)(&convolution),
                 "cudnnCreateConvolutionDescriptor");
  victim::expect(VICTIM_FUNCTION(library, cudnnSetConvolution2dDescriptor)(convolution, 1, 1, 1, 1, 1, 1,
                                                                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                 "cudnnSetConvolution2dDescriptor");
  const CUdeviceptr in = device.allocate_random(kImage);
  const CUdeviceptr weights = device.allocate_random(kWeights);
  const CUdeviceptr out = device.allocate(kImage * sizeof(float));
  const auto workspace_size = VICTIM_FUNCTION(library, cudnnGetConvolutionForwardWorkspaceSize);
  const auto forward = VICTIM_FUNCTION(library, cudnnConvolutionForward);
  const float one = 1;
  const float zero = 0;
  for (const Algorithm& a : kAlgorithms) {
    size_t bytes = 0;
    if (workspace_size(handle, image, filter, convolution, image, a.algorithm, &bytes) != CUDNN_STATUS_SUCCESS)
      continue;
    const CUdeviceptr workspace = bytes ? device.allocate(bytes) : 0;
    const auto convolve = [&] {
      victim::expect(forward(handle, &one, image, reinterpret_cast<void*>(in), filter, reinterpret_cast<void*>(weights),
                             convolution, a.algorithm, reinterpret_cast<void*>(workspace), bytes, &zero, image,
                             reinterpret_cast<void*>(out)),
                     "cudnnConvolutionForward");
    };
    if (victim::wants_purity(argc, argv)) {
      victim::report_purity(device, a.name, out, kImage * sizeof(float), workspace, bytes, convolve);
    } else {
      for (int i = 0; i < 20; ++i) convolve();
    }
  }
  device.synchronize();
  if (!victim::wants_purity(argc, argv)) std::printf("{\"cudnn\": %zu}\n", VICTIM_FUNCTION(library, cudnnGetVersion)());
  victim::expect(VICTIM_FUNCTION(library, cudnnDestroy)(handle), "cudnnDestroy");
  return 0;
}
