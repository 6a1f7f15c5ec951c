// The sections of a cubin, which is an ELF file, and what .nv.info says of a kernel. Callers: the parsers of cubins.
#pragma once
#include <elf.h>

#include <string_view>
#include <vector>

#include "preload/images/bytes.h"
#include "preload/images/image.h"

namespace reprise::images {

inline constexpr unsigned char kEntryBit = 0x10;  // of st_other: a kernel

struct Section {
  Elf64_Shdr header;
  std::string_view name;
  Bytes data;  // empty where the file has none of its bytes
};

Status corrupt_cubin(const char* what);
bool is_in_file(const Elf64_Shdr& section);
Result<std::vector<Section>> read_sections(Bytes bytes);
// The same of any ELF file of 64 bits, a program of the host's among them.
Result<std::vector<Section>> read_elf_sections(Bytes bytes);
void read_kernel_info(Bytes info, KernelImage& kernel);

}  // namespace reprise::images
