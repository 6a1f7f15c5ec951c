#include "tools/device/twins/parameter_kinds.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

namespace reprise::sim {
namespace {

// Not pointers: what they name counts as a tensor, or differs in each run.
constexpr std::string_view kScalars[] = {"bool",
                                         "char",
                                         "signed char",
                                         "unsigned char",
                                         "short",
                                         "unsigned short",
                                         "int",
                                         "unsigned int",
                                         "long",
                                         "unsigned long",
                                         "long long",
                                         "unsigned long long",
                                         "float",
                                         "double",
                                         "__half",
                                         "__nv_bfloat16",
                                         "c10::Half",
                                         "c10::BFloat16",
                                         "c10::complex<float>",
                                         "c10::complex<double>"};

// PyTorch's small structures that carry numbers. `bytes` 0: of any size.
struct KnownStructure {
  std::string_view type;  // what the type's name begins with
  uint32_t bytes;
  SetBytes set;
};
constexpr KnownStructure kStructures[] = {
    // Seed, offset, offset within a graph, and whether it is captured: a flag of one byte.
    {"at::PhiloxCudaState", 32, {0, 25}},
    // An empty functor, then the operand that is a number.
    {"at::native::AUnaryFunctor<", 8, {4, 8}},
    {"at::native::AUnaryFunctor<", 16, {8, 16}},
    {"at::native::BUnaryFunctor<", 8, {4, 8}},
    {"at::native::BUnaryFunctor<", 16, {8, 16}},
    // The factor of the second operand.
    {"at::native::CUDAFunctor_add<", 4, {0, 4}},
    {"at::native::CUDAFunctor_add<", 8, {0, 8}},
};

bool is_scalar(std::string_view type) {
  return std::find(std::begin(kScalars), std::end(kScalars), type) != std::end(kScalars);
}

SetBytes of_type(std::string_view type, uint32_t bytes) {
  if (is_scalar(type)) return {0, bytes};
  for (const KnownStructure& known : kStructures) {
    if (type.starts_with(known.type) && bytes == known.bytes) return known.set;
  }
  return {};
}

SetBytes of_size(uint32_t bytes) {
  const bool scalar = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  return scalar ? SetBytes{0, bytes} : SetBytes{};
}

std::vector<SetBytes> find_set_bytes(const KernelImage& kernel) {
  const bool mangled = kernel.name.starts_with("_Z");
  const std::vector<std::string> types = parameter_types(kernel.name);
  std::vector<SetBytes> found;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const uint32_t bytes = kernel.parameters[i].bytes;
    if (!mangled) {
      found.push_back(of_size(bytes));
    } else {
      found.push_back(types.size() == kernel.parameters.size() ? of_type(types[i], bytes) : SetBytes{});
    }
  }
  return found;
}

int depth_change(char c) {
  if (std::strchr("<({[", c) != nullptr) return 1;
  return std::strchr(">)}]", c) != nullptr ? -1 : 0;
}

}  // namespace

std::vector<std::string> parameter_types(const std::string& mangled) {
  int status = 0;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = text == nullptr ? "" : text;
  std::free(text);
  if (!name.ends_with(')')) return {};
  size_t open = name.size() - 1;
  for (int depth = 1; depth > 0;) {
    if (open == 0) return {};
    --open;
    if (name[open] == ')') ++depth;
    if (name[open] == '(') --depth;
  }
  std::vector<std::string> types;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t at = begin; at < name.size(); ++at) {
    const bool last = at == name.size() - 1;
    if (!last) depth += depth_change(name[at]);
    if (!last && (name[at] != ',' || depth != 0)) continue;
    std::string type = name.substr(begin, at - begin);
    if (type.ends_with(" const")) type.resize(type.size() - std::strlen(" const"));
    if (!type.empty()) types.push_back(std::move(type));
    begin = at + 2;  // ", "
  }
  return depth == 0 ? types : std::vector<std::string>{};
}

const std::vector<SetBytes>& set_bytes(const KernelImage& kernel) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<std::string, std::vector<uint32_t>>, std::vector<SetBytes>>;
  std::vector<uint32_t> sizes;
  for (const auto& parameter : kernel.parameters) sizes.push_back(parameter.bytes);
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known.try_emplace({kernel.name, std::move(sizes)});
  if (fresh) entry->second = find_set_bytes(kernel);
  return entry->second;
}

}  // namespace reprise::sim
