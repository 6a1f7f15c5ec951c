#include "preload/tracking/module_image.h"

#include <cuda.h>

#include <fstream>
#include <iterator>
#include <string>

#include "preload/driver/driver.h"
#include "preload/images/image.h"
#include "preload/trace/kernel_identity.h"

namespace reprise {
namespace {

constexpr uint32_t kMostArchitectures = 8;

struct Architectures {
  uint32_t count = 0;
  uint32_t values[kMostArchitectures] = {};
};

// Of all devices, each once: a library is loaded for whichever of them will use it.
Architectures architectures() {
  Architectures found;
  int devices = 0;
  if (driver().cuDeviceGetCount(&devices) != CUDA_SUCCESS) devices = 0;
  for (CUdevice device = 0; device < devices && found.count < kMostArchitectures; ++device) {
    int major = 0;
    int minor = 0;
    if (driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS) {
      continue;
    }
    const auto architecture = static_cast<uint32_t>(major * 10 + minor);
    bool known = false;
    for (uint32_t i = 0; i < found.count; ++i) known = known || found.values[i] == architecture;
    if (!known) found.values[found.count++] = architecture;
  }
  if (found.count == 0) found.values[found.count++] = images::kAnyArchitecture;
  return found;
}

// What the parser throws is std::bad_alloc.
template <typename Parse>
ImageTraits traits(Parse&& parse) noexcept {
  ImageTraits all{false, false};
  try {
    const Architectures devices = architectures();
    bool parsed = false;
    bool allocates = false;
    for (uint32_t i = 0; i < devices.count; ++i) {
      const Result<images::Image> image = parse(devices.values[i]);
      if (!image.ok()) continue;  // none for this device, which then cannot have taken it
      parsed = true;
      all.variables = all.variables || images::holds_variables(image.value());
      all.prints = all.prints || image.value().prints;
      allocates = allocates || image.value().allocates;
      all.code = trace::code_of_image(all.code, image.value().content);
      all.architecture = devices.count == 1 ? devices.values[i] : 0;
    }
    if (allocates) all.code = 0;
    if (parsed) return all;
  } catch (...) {
  }
  return {};
}

}  // namespace

ImageTraits traits_of_image(const void* image) noexcept {
  return traits([image](uint32_t architecture) { return images::parse_image(image, architecture); });
}

ImageTraits traits_of_file(const char* path) noexcept {
  return traits([path](uint32_t architecture) {
    std::ifstream file(path, std::ios::binary);
    return images::parse_image(std::string{std::istreambuf_iterator<char>(file), {}}, architecture);
  });
}

}  // namespace reprise
