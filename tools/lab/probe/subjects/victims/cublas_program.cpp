// Calls cuBLAS: products of several sizes and types, batched ones, with and without a workspace of ours.
#include <cublas_v2.h>

#include "tools/lab/probe/subjects/victims/library_program.h"

namespace {

struct Product {
  const char* name;
  cudaDataType type;
  cublasComputeType_t compute;
  int size;
  bool workspace;
};
constexpr Product kProducts[] = {{"fp32 512", CUDA_R_32F, CUBLAS_COMPUTE_32F, 512, false},
                                 {"fp32 512, workspace", CUDA_R_32F, CUBLAS_COMPUTE_32F, 512, true},
                                 {"tf32 2048", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 2048, true},
                                 {"bf16 256", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 256, false},
                                 {"bf16 4096", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 4096, false},
                                 {"bf16 4096, workspace", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 4096, true}};
// cublasGemmEx is overloaded in C++; this is the exported one.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
constexpr size_t kLargest = 4096 * 4096;
constexpr size_t kWorkspace = size_t{32} << 20;

}  // namespace

int main(int argc, char** argv) {
  void* library = victim::open_library("libcublas.so.13");
  const victim::Device device;
  const auto gemm = victim::find<Gemm>(library, "cublasGemmEx");
  const auto set_workspace = VICTIM_FUNCTION(library, cublasSetWorkspace);
  cublasHandle_t handle = nullptr;
  victim::expect(VICTIM_FUNCTION(library, cublasCreate)(&handle), "cublasCreate");
  const CUdeviceptr a = device.allocate_random(kLargest);
  const CUdeviceptr b = device.allocate_random(kLargest);
  const CUdeviceptr c = device.allocate(kLargest * sizeof(float));
  const CUdeviceptr workspace = device.allocate(kWorkspace);
  const float one = 1;
  const float zero = 0;
  for (const Product& p : kProducts) {
    victim::expect(
        set_workspace(handle, p.workspace ? reinterpret_cast<void*>(workspace) : nullptr, p.workspace ? kWorkspace : 0),
        "cublasSetWorkspace");
    const size_t bytes = static_cast<size_t>(p.size) * static_cast<size_t>(p.size) * (p.type == CUDA_R_32F ? 4 : 2);
    const auto multiply = [&] {
      victim::expect(gemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, p.size, p.size, p.size, &one, reinterpret_cast<void*>(a),
                          p.type, p.size, reinterpret_cast<void*>(b), p.type, p.size, &zero, reinterpret_cast<void*>(c),
                          p.type, p.size, p.compute, CUBLAS_GEMM_DEFAULT),
                     "cublasGemmEx");
    };
    if (victim::wants_purity(argc, argv)) {
      victim::report_purity(device, p.name, c, bytes, p.workspace ? workspace : 0, kWorkspace, multiply);
    } else {
      for (int i = 0; i < 20; ++i) multiply();
    }
  }
  device.synchronize();
  int version = 0;
  VICTIM_FUNCTION(library, cublasGetVersion)(handle, &version);
  if (!victim::wants_purity(argc, argv)) std::printf("{\"cublas\": %d}\n", version);
  victim::expect(VICTIM_FUNCTION(library, cublasDestroy)(handle), "cublasDestroy");
  return 0;
}
