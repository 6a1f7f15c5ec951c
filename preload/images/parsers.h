// The parsers behind parse_image(), each over bytes of known extent. Callers: image.cpp, fatbin.cpp and their tests.
#pragma once
#include <string_view>

#include "preload/images/bytes.h"
#include "preload/images/image.h"

namespace reprise::images {

inline constexpr uint32_t kElfMagic = 0x464c457f;
inline constexpr uint32_t kFatbinMagic = 0xba55ed50;
inline constexpr uint32_t kFatbinWrapperMagic = 0x466243b1;
inline constexpr std::string_view kPrintf = "vprintf";  // what the compiler makes of printf; the driver has it
inline constexpr std::string_view kMalloc = "malloc";
inline constexpr std::string_view kFree = "free";

// How far an ELF image or a fatbin reaches, by its own headers; 0: none of the two. `bytes` holds at least the fixed
// header of 64 (ELF) or 16 (fatbin) bytes; more is only read as far as the headers name it.
uint64_t elf_extent(const void* image);
uint64_t fatbin_extent(const void* image);

Result<Image> parse_cubin(Bytes bytes);
Result<Image> parse_fatbin(Bytes bytes, uint32_t architecture);
Result<Image> parse_ptx(std::string_view text);
// The unpacked cubins that parse_fatbin() reads.
Result<std::vector<std::string>> fatbin_cubins(Bytes bytes, uint32_t architecture);

// Adds `more` to `image`; a kernel or global that is there already is kept.
void merge_image(Image& image, Image more);

}  // namespace reprise::images
