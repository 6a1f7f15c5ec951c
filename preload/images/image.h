// What a cubin, fatbin or PTX text contains: kernels with parameter layouts, and globals. Callers: module_image.cpp for
// the hooks on module loads, the simulated driver. Pure parsing of untrusted bytes; touches no device state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::images {

struct ParameterImage {
  uint32_t offset;
  uint32_t bytes;
};

struct KernelImage {
  std::string name;  // mangled
  std::vector<ParameterImage> parameters;
  bool parameters_known = false;
  uint32_t parameters_at = 0;  // where they begin in constant bank 0; 0: not known
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads = 1024;
};

struct GlobalImage {
  std::string name;
  uint64_t bytes = 0;
  std::vector<uint8_t> initial;  // zeros follow where it is shorter than `bytes`
  bool constant = false;
};

struct Image {
  std::vector<KernelImage> kernels;
  std::vector<GlobalImage> globals;
  bool prints = false;     // some kernel may call printf
  bool allocates = false;  // ... malloc or free
  uint64_t content = 0;    // hash of the cubin or PTX that this was read from
};

// Instead of a device's architecture (its compute capability, 90 for 9.0): the newest that an image has.
inline constexpr uint32_t kAnyArchitecture = 0;

// Parses what cuModuleLoadData and cuLibraryLoadData accept: an ELF cubin, a fatbin (bare or in its wrapper; zstd or
// LZ4 compressed entries; the newest cubin that the device can run is taken, PTX only where there is none) or
// zero-terminated PTX. Sizes are read from the image's own headers.
Result<Image> parse_image(const void* image, uint32_t architecture);

// The same of a file's contents, none of which is read beyond its end.
Result<Image> parse_image(const std::string& content, uint32_t architecture);

// The bytes of a cubin or of one fatbin, also in its wrapper. Empty: PTX, or an image made of several.
std::string_view bytes_of(const void* image);

// Can kernels of this image pass each other data without a pointer? Some variables are known not to be written.
bool holds_variables(const Image& image);

}  // namespace reprise::images
