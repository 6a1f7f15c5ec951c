#include "tools/sim/images/image.h"

#include <algorithm>

#include "tools/sim/images/parsers.h"

namespace reprise::sim {
namespace {

// What nvcc leaves in a program for __cudaRegisterFatBinary. Version 1: `data` is the fatbin. Version 2 (relocatable
// device code): `prelinked` is a zero-terminated array of further fatbins.
struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* const* prelinked;
};

Result<Image> parse_plain_fatbin(const void* image) { return parse_fatbin(Bytes(image, fatbin_extent(image))); }

Result<Image> parse_wrapper(const void* image) {
  FatbinWrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  if (wrapper.data == nullptr) return Status(StatusCode::corrupt, "fatbin wrapper without data");
  auto result = parse_image(wrapper.data);
  if (wrapper.version != 2 || wrapper.prelinked == nullptr) return result;
  Image merged = result.ok() ? std::move(result.value()) : Image{};
  for (const void* const* more = wrapper.prelinked; *more != nullptr; ++more) {
    auto part = parse_image(*more);
    if (!part.ok()) return part;
    merge_image(merged, std::move(part.value()));
  }
  return merged;
}

}  // namespace

void merge_image(Image& image, Image more) {
  for (auto& kernel : more.kernels) {
    const bool known = std::any_of(image.kernels.begin(), image.kernels.end(),
                                   [&](const KernelImage& other) { return other.name == kernel.name; });
    if (!known) image.kernels.push_back(std::move(kernel));
  }
  for (auto& global : more.globals) {
    const bool known = std::any_of(image.globals.begin(), image.globals.end(),
                                   [&](const GlobalImage& other) { return other.name == global.name; });
    if (!known) image.globals.push_back(std::move(global));
  }
}

Result<Image> parse_image(const void* image) {
  if (image == nullptr) return Status(StatusCode::invalid_argument, "no image");
  // Text may be shorter than a magic number: look byte by byte.
  const auto* text = static_cast<const char*>(image);
  const size_t sure = strnlen(text, sizeof(uint32_t));
  uint32_t magic = 0;
  std::memcpy(&magic, image, sure);
  switch (magic) {
    case kElfMagic:
      return parse_cubin(Bytes(image, elf_extent(image)));
    case kFatbinMagic:
      return parse_plain_fatbin(image);
    case kFatbinWrapperMagic:
      return parse_wrapper(image);
    default:
      return parse_ptx(text);
  }
}

}  // namespace reprise::sim
