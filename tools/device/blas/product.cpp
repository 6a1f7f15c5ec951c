#include "tools/device/blas/product.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "tools/device/base/device_name.h"
#include "tools/device/blas/unsupported.h"

namespace reprise::sim::blas {
namespace {

// Only declared: the simulated device runs its twin.
std::string image() {
  std::string text = ".version 8.0\n.target sm_52\n.address_size 64\n.visible .entry ";
  text += kProductKernel;
  const char* separator = "(\n";
  const auto parameter = [&](const char* type, const char* name) {
    text += separator + (".param " + std::string(type) + " " + name);
    separator = ",\n";
  };
#define PARAMETER64(name) parameter(".u64", #name);
#define PARAMETER32(name) parameter(".u32", #name);
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
  return text + ")\n{ ret; }\n";
}

template <typename Function>
bool find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kPrototypes = 12090;  // of cuda.h
  if (cudaGetDriverEntryPointByVersion(name, &found, kPrototypes, cudaEnableLegacyStream, &status) != cudaSuccess) {
    return false;
  }
  function = reinterpret_cast<Function>(found);
  return found != nullptr;
}

// On a real device the kernel would do nothing, and all results would be wrong.
bool is_simulated() {
  int device = 0;
  cudaDeviceProp properties;
  return cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess &&
         std::strcmp(properties.name, kDeviceName) == 0;
}

struct Kernel {
  decltype(&::cuLaunchKernel) launch = nullptr;
  CUkernel kernel = nullptr;
  const char* problem = nullptr;
};

Kernel load_kernel() {
  Kernel loaded;
  decltype(&::cuLibraryLoadData) load = nullptr;
  decltype(&::cuLibraryGetKernel) get = nullptr;
  CUlibrary library = nullptr;
  if (cudaFree(nullptr) != cudaSuccess) {
    loaded.problem = "no CUDA device can be used";
  } else if (!is_simulated()) {
    loaded.problem = "this is a real device: start the program without the simulated device's libcublas";
  } else if (!find("cuLibraryLoadData", load) || !find("cuLibraryGetKernel", get) ||
             !find("cuLaunchKernel", loaded.launch)) {
    loaded.problem = "the driver lacks cuLibraryLoadData, cuLibraryGetKernel or cuLaunchKernel";
  } else if (load(&library, image().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS ||
             get(&loaded.kernel, library, kProductKernel) != CUDA_SUCCESS) {
    loaded.problem = "the driver does not load the kernel";
  }
  if (loaded.problem != nullptr) std::fprintf(stderr, "reprise: simulated cuBLAS: %s\n", loaded.problem);
  return loaded;
}

const Kernel& kernel() {
  static const Kernel loaded = load_kernel();
  return loaded;
}

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// A scalar's bits, or where they are.
void set_scalar(const Product& product, const void* scalar, uint64_t& at, uint32_t* bits) {
  if (product.scalars_on_device) {
    at = address(scalar);
  } else {
    std::memcpy(bits, scalar, number_type(product.scale_type).bytes());
  }
}

void set_matrices(const Product& product, Parameters& to) {
#define MATRIX(name)                                             \
  to.name = address(product.name.at);                            \
  to.name##_row = static_cast<uint64_t>(product.name.row);       \
  to.name##_column = static_cast<uint64_t>(product.name.column); \
  to.name##_matrix = static_cast<uint64_t>(product.name.matrix); \
  to.name##_type = product.name.type;
  MATRIX(a)
  MATRIX(b)
  MATRIX(c)
  MATRIX(d)
#undef MATRIX
}

Parameters parameters_of(const Product& product) {
  Parameters to;
  set_matrices(product, to);
  to.bias = address(product.bias);
  to.bias_matrix = static_cast<uint64_t>(product.bias_matrix);
  to.workspace = address(product.workspace);
  to.workspace_bytes = product.workspace_bytes;
  to.m = static_cast<uint64_t>(product.m);
  to.n = static_cast<uint64_t>(product.n);
  to.k = static_cast<uint64_t>(product.k);
  to.batch = static_cast<uint32_t>(product.batch);
  to.tables = product.tables ? 1 : 0;
  to.conjugate = (product.conjugate_a ? 1u : 0u) | (product.conjugate_b ? 2u : 0u);
  to.scale_type = product.scale_type;
  to.compute = product.compute;
  to.math = product.math;
  to.epilogue = product.epilogue;
  to.multiprocessors = static_cast<uint32_t>(product.multiprocessors);
  to.algorithm = product.algorithm;
  uint32_t alpha[4] = {};
  uint32_t beta[4] = {};
  set_scalar(product, product.alpha, to.alpha_at, alpha);
  set_scalar(product, product.beta, to.beta_at, beta);
  std::tie(to.alpha_0, to.alpha_1, to.alpha_2, to.alpha_3) = std::tie(alpha[0], alpha[1], alpha[2], alpha[3]);
  std::tie(to.beta_0, to.beta_1, to.beta_2, to.beta_3) = std::tie(beta[0], beta[1], beta[2], beta[3]);
  const bool no_beta =
      !product.scalars_on_device && is_zero(reinterpret_cast<const uint8_t*>(beta), number_type(product.scale_type));
  if (no_beta) to.c = 0;
  return to;
}

CUresult submit(Parameters parameters, uint64_t blocks, cudaStream_t stream) {
  void* arguments[] = {
#define PARAMETER64(name) &parameters.name,
#define PARAMETER32(name) &parameters.name,
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
  };
  constexpr uint64_t kMostBlocks = 0x7fffffff;
  constexpr unsigned kThreads = 256;
  return kernel().launch(reinterpret_cast<CUfunction>(kernel().kernel),
                         static_cast<unsigned>(std::min(blocks, kMostBlocks)), 1, 1, kThreads, 1, 1, 0, stream,
                         arguments, nullptr);
}

}  // namespace

bool is_supported(cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t ab, cudaDataType_t cd) {
#define PRODUCT(its_compute, its_scale, its_ab, its_cd) \
  if (compute == its_compute && scale == its_scale && ab == its_ab && cd == its_cd) return true;
#include "tools/device/blas/products.def"
#undef PRODUCT
  return false;
}

cublasStatus_t ensure_kernel() {
  return kernel().problem == nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t launch(const Product& product, cudaStream_t stream) {
  if (product.a.type != product.b.type || product.c.type != product.d.type ||
      !is_supported(product.compute, product.scale_type, product.a.type, product.d.type)) {
    return not_supported("a product of these types");
  }
  if (product.m == 0 || product.n == 0 || product.batch == 0) return CUBLAS_STATUS_SUCCESS;
  if (const cublasStatus_t ready = ensure_kernel(); ready != CUBLAS_STATUS_SUCCESS) return ready;
  const Parameters parameters = parameters_of(product);
  constexpr uint64_t kTile = 128;
  const uint64_t blocks = (parameters.m + kTile - 1) / kTile * ((parameters.n + kTile - 1) / kTile) * parameters.batch;
  CUresult result = submit(parameters, blocks, stream);
  // A thread that made no call yet has no context.
  if (result == CUDA_ERROR_INVALID_CONTEXT && cudaFree(nullptr) == cudaSuccess) {
    result = submit(parameters, blocks, stream);
  }
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t not_supported(const char* what) {
  static std::mutex mutex;
  static auto& told = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (told.insert(what).second) std::fprintf(stderr, "reprise: simulated cuBLAS: %s is not supported\n", what);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

int unsupported(const char* function) { return not_supported(function); }

}  // namespace reprise::sim::blas
