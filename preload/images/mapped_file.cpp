#include "preload/images/mapped_file.h"

#include <link.h>

#include <cstdlib>

namespace reprise::images {
namespace {

struct MappingSearch {
  uint64_t begin;
  uint64_t bytes;
  MappedFile file;
};

// A segment that holds all of the image.
int look_into(dl_phdr_info* info, size_t, void* data) {
  auto* const search = static_cast<MappingSearch*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uint64_t at = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search->begin < at || search->begin + search->bytes > at + segment.p_filesz) {
      continue;
    }
    const char* const name = *info->dlpi_name == '\0' ? "/proc/self/exe" : info->dlpi_name;
    search->file.offset = segment.p_offset + (search->begin - at);
    search->file.found = realpath(name, search->file.path) != nullptr;
    return 1;
  }
  return 0;
}

}  // namespace

MappedFile file_of(std::string_view image) noexcept {
  MappingSearch search{reinterpret_cast<uint64_t>(image.data()), image.size(), {}};
  if (!image.empty()) dl_iterate_phdr(look_into, &search);
  return search.file;
}

}  // namespace reprise::images
