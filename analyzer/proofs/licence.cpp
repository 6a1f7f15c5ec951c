#include "analyzer/proofs/licence.h"

#include <algorithm>
#include <iterator>

namespace reprise::code {
namespace {

constexpr std::string_view kFiles[] = {"libcublas",   "libcudnn",    "libcufft", "libcurand", "libcusolver",
                                       "libcusparse", "libcutensor", "libnpp",   "libnvjpeg", "libnvinfer",
                                       "libcudart",   "libcupti",    "libnvrtc", "libnvshmem"};
// Kernels of cuBLAS, cuDNN and cuFFT whose names speak of architectures and shapes alone begin so.
constexpr std::string_view kBeginnings[] = {
    "maxwell_", "pascal_",     "volta_",      "turing_",     "ampere_",     "hopper_",     "blackwell_", "sm50_",
    "sm60_",    "sm70_",       "sm75_",       "sm80_",       "sm86_",       "sm89_",       "sm90_",      "sm100_",
    "sm120_",   "cutlass_70_", "cutlass_75_", "cutlass_80_", "cutlass_90_", "regular_fft", "vector_fft"};
// Namespaces and words in the names of the others.
constexpr std::string_view kKernels[] = {"cublas",   "cudnn",    "cufft", "cusolver",
                                         "cusparse", "cutensor", "nvjet", "xmma_"};
constexpr std::string_view kOurs[] = {"at6native", "c10"};  // PyTorch's kernels speak of cuBLAS in types

}  // namespace

bool is_nvidias_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(std::begin(kFiles), std::end(kFiles),
                     [name](std::string_view begin) { return name.starts_with(begin); });
}

bool is_nvidias(std::string_view kernel) {
  const auto has = [kernel](std::string_view word) { return kernel.find(word) != std::string_view::npos; };
  const auto begins = [kernel](std::string_view word) { return kernel.starts_with(word); };
  if (std::any_of(std::begin(kBeginnings), std::end(kBeginnings), begins)) return true;
  return std::any_of(std::begin(kKernels), std::end(kKernels), has) &&
         std::none_of(std::begin(kOurs), std::end(kOurs), has);
}

}  // namespace reprise::code
