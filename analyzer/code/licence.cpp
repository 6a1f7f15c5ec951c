#include "analyzer/code/licence.h"

#include <algorithm>
#include <iterator>

namespace reprise::code {
namespace {

constexpr std::string_view kFiles[] = {"libcublas",   "libcudnn",    "libcufft", "libcurand", "libcusolver",
                                       "libcusparse", "libcutensor", "libnpp",   "libnvjpeg", "libnvinfer",
                                       "libcudart",   "libcupti",    "libnvrtc", "libnvshmem"};
// How the names of their kernels begin, or what namespaces they are in.
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
  return std::any_of(std::begin(kKernels), std::end(kKernels), has) &&
         std::none_of(std::begin(kOurs), std::end(kOurs), has);
}

}  // namespace reprise::code
