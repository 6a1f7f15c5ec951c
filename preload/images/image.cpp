#include "preload/images/image.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "preload/images/parsers.h"
#include "preload/trace/signature.h"

namespace reprise::images {
namespace {

// What nvcc leaves in a program for __cudaRegisterFatBinary. Version 1: `data` is the fatbin. Version 2 (relocatable
// device code): `prelinked` is a zero-terminated array of further fatbins.
struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* const* prelinked;
};

Result<Image> parse_wrapper(const void* image, uint32_t architecture) {
  FatbinWrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  if (wrapper.data == nullptr) return Status(StatusCode::corrupt, "fatbin wrapper without data");
  auto result = parse_image(wrapper.data, architecture);
  if (wrapper.version != 2 || wrapper.prelinked == nullptr) return result;
  bool found = result.ok();
  Image merged = result.ok() ? std::move(result.value()) : Image{};
  for (const void* const* more = wrapper.prelinked; *more != nullptr; ++more) {
    auto part = parse_image(*more, architecture);
    if (!part.ok() && part.status().code() == StatusCode::unsupported) continue;  // of another device
    if (!part.ok()) return part;
    found = true;
    merge_image(merged, std::move(part.value()));
  }
  return found ? Result<Image>(std::move(merged)) : Status(StatusCode::unsupported, "fatbins for other devices only");
}

struct ConstantObject {
  std::string_view space;
  bool versioned;
};

constexpr std::string_view kConstantTables[] = {
#define CONSTANT_TABLE(begin, of) begin,
#define CONSTANT_OBJECT(space, versioned, of)
#include "preload/images/constants.def"
#undef CONSTANT_TABLE
#undef CONSTANT_OBJECT
};
constexpr ConstantObject kConstantObjects[] = {
#define CONSTANT_TABLE(begin, of)
#define CONSTANT_OBJECT(space, versioned, of) {space, versioned},
#include "preload/images/constants.def"
#undef CONSTANT_TABLE
#undef CONSTANT_OBJECT
};

bool is_in(std::string_view name, const ConstantObject& object) {
  constexpr std::string_view kVersion = "3__";
  const size_t space = name.find(object.space);
  if (space == std::string_view::npos || !object.versioned) return space != std::string_view::npos;
  const size_t version = name.find(kVersion, space + object.space.size());
  if (version == std::string_view::npos || version + kVersion.size() >= name.size()) return false;
  const char digit = name[version + kVersion.size()];
  return digit >= '1' && digit <= '9';
}

// Variables that no kernel writes: string literals and names of functions that assert, as PTX calls them, and what
// constants.def lists.
bool is_constant(const GlobalImage& global) {
  const std::string_view name = global.name;
  if (global.constant || global.bytes == 0 || name.starts_with("$str") || name.starts_with("__unnamed_")) return true;
  if (global.initial.empty()) {
    return global.bytes == 1 && std::any_of(std::begin(kConstantObjects), std::end(kConstantObjects),
                                            [name](const ConstantObject& object) { return is_in(name, object); });
  }
  return std::any_of(std::begin(kConstantTables), std::end(kConstantTables),
                     [name](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace

bool holds_variables(const Image& image) {
  return !std::all_of(image.globals.begin(), image.globals.end(), is_constant);
}

void merge_image(Image& image, Image more) {
  image.prints = image.prints || more.prints;
  image.allocates = image.allocates || more.allocates;
  image.content = trace::hash_mix(image.content, more.content);
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

Result<Image> parse_image(const void* image, uint32_t architecture) {
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
      return parse_fatbin(Bytes(image, fatbin_extent(image)), architecture);
    case kFatbinWrapperMagic:
      return parse_wrapper(image, architecture);
    default:
      return parse_ptx(text);
  }
}

std::string_view bytes_of(const void* image) {
  const auto* const text = static_cast<const char*>(image);
  if (image == nullptr || strnlen(text, sizeof(uint32_t)) < sizeof(uint32_t)) return {};
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  FatbinWrapper wrapper;
  switch (magic) {
    case kElfMagic:
      return {text, elf_extent(image)};
    case kFatbinMagic:
      return {text, fatbin_extent(image)};
    case kFatbinWrapperMagic:
      std::memcpy(&wrapper, image, sizeof wrapper);
      return wrapper.version == 2 && wrapper.prelinked != nullptr ? std::string_view{} : bytes_of(wrapper.data);
    default:
      return {};
  }
}

Result<Image> parse_image(const std::string& content, uint32_t architecture) {
  const Bytes bytes(content.data(), content.size());
  switch (bytes.read<uint32_t>(0).value_or(0)) {
    case kElfMagic:
      return parse_cubin(bytes);
    case kFatbinMagic:
      return parse_fatbin(bytes, architecture);
    case kFatbinWrapperMagic:
      return Status(StatusCode::unsupported, "a fatbin wrapper points into a program's memory, and is no file");
    default:
      return parse_ptx(std::string_view(content).substr(0, content.find('\0')));
  }
}

}  // namespace reprise::images
