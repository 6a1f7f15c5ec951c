#include "preload/images/sections.h"

#include <algorithm>
#include <string>

namespace reprise::images {
namespace {

constexpr uint16_t kMachineCuda = 190;

// Attributes of .nv.info: format byte, attribute byte, then 16 bits that are the value or (format 4) the payload's
// size.
constexpr uint8_t kValueFormat = 3;
constexpr uint8_t kSizedFormat = 4;
constexpr uint8_t kMaxThreads = 0x05;
constexpr uint8_t kParameterBank = 0x0a;       // a symbol, then offset and size of the parameters in constant bank 0
constexpr uint8_t kParameterInfo = 0x17;       // ordinal, offset, and a size of 14 bits
constexpr uint8_t kLargeParameterInfo = 0x45;  // the same with 16 bits for the size, and flags above them
constexpr uint8_t kParameterSpace = 0x19;      // bytes from the first parameter to the end of the last
constexpr uint32_t kLargeSizeMask = 0xffff;

// Memory that has no content before a launch. Linked cubins say NOBITS; relocatable ones have a type for each kind.
constexpr uint32_t kGlobalMemory = SHT_LOPROC + 0x7;
constexpr uint32_t kLocalMemory = SHT_LOPROC + 0x9;
constexpr uint32_t kSharedMemory = SHT_LOPROC + 0xa;
constexpr uint32_t kReservedSharedMemory = SHT_LOPROC + 0x15;

void read_parameter(Bytes payload, bool large, std::vector<ParameterImage>& parameters) {
  const auto ordinal = payload.read<uint16_t>(4);
  const auto offset = payload.read<uint16_t>(6);
  const auto packed = payload.read<uint32_t>(8);
  constexpr size_t kMostParameters = 4096;  // parameter space is 32764 bytes at most
  if (!ordinal || !offset || !packed || *ordinal >= kMostParameters) return;
  if (parameters.size() <= *ordinal) parameters.resize(*ordinal + size_t{1});
  parameters[*ordinal] = {*offset, large ? *packed & kLargeSizeMask : *packed >> 18};
}

void read_max_threads(Bytes payload, KernelImage& kernel) {
  uint64_t product = 1;
  for (uint64_t i = 0; i < 3; ++i) {
    const auto extent = payload.read<uint32_t>(i * 4);
    if (!extent || *extent == 0 || *extent > 1024) return;
    product *= *extent;
  }
  if (product <= 1024) kernel.max_threads = static_cast<uint32_t>(product);
}

}  // namespace

Status corrupt_cubin(const char* what) { return {StatusCode::corrupt, std::string("cubin: ") + what}; }

bool is_in_file(const Elf64_Shdr& section) {
  for (const uint32_t type :
       {uint32_t{SHT_NULL}, uint32_t{SHT_NOBITS}, kGlobalMemory, kLocalMemory, kSharedMemory, kReservedSharedMemory}) {
    if (section.sh_type == type) return false;
  }
  return true;
}

Result<std::vector<Section>> read_sections(Bytes bytes) {
  const auto header = bytes.read<Elf64_Ehdr>(0);
  const bool is_elf = header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
  if (is_elf && header->e_machine != kMachineCuda) {
    return Status(StatusCode::unsupported, "cubin: an ELF file, but not for a CUDA device");
  }
  return read_elf_sections(bytes);
}

Result<std::vector<Section>> read_elf_sections(Bytes bytes) {
  const auto found = bytes.read<Elf64_Ehdr>(0);
  if (!found || std::memcmp(found->e_ident, ELFMAG, SELFMAG) != 0) return corrupt_cubin("no ELF header");
  const Elf64_Ehdr& header = *found;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return Status(StatusCode::unsupported, "cubin: an ELF file of 32 bits");
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return corrupt_cubin("section headers of an unknown size");
  std::vector<Section> sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = bytes.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return corrupt_cubin("section headers beyond the end");
    Bytes data;
    if (is_in_file(*section)) {
      const auto part = bytes.slice(section->sh_offset, section->sh_size);
      if (!part) return corrupt_cubin("a section beyond the end");
      data = *part;
    }
    sections.push_back({*section, {}, data});
  }
  if (header.e_shstrndx >= sections.size()) return corrupt_cubin("no section names");
  const Bytes names = sections[header.e_shstrndx].data;
  for (auto& section : sections) {
    const auto name = names.text(section.header.sh_name);
    if (!name) return corrupt_cubin("a section name beyond the end");
    section.name = *name;
  }
  return sections;
}

void read_kernel_info(Bytes info, KernelImage& kernel) {
  uint32_t space = 0;
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const uint8_t format = info.data()[at];
    const uint8_t attribute = info.data()[at + 1];
    const uint16_t value = info.read<uint16_t>(at + 2).value_or(0);
    at += 4;
    if (format == kValueFormat && attribute == kParameterSpace) space = value;
    if (format != kSizedFormat) continue;
    const auto payload = info.slice(at, value);
    if (!payload) return;  // the rest is not readable; parameters_known stays false
    at += value;
    if (attribute == kParameterInfo || attribute == kLargeParameterInfo) {
      read_parameter(*payload, attribute == kLargeParameterInfo, kernel.parameters);
    }
    if (attribute == kMaxThreads) read_max_threads(*payload, kernel);
    if (attribute == kParameterBank) kernel.parameters_at = payload->read<uint16_t>(4).value_or(0);
  }
  kernel.parameters_known = true;
  uint32_t described = 0;
  for (const auto& parameter : kernel.parameters) {
    if (parameter.bytes == 0) kernel.parameters_known = false;  // an ordinal that nothing described
    described = std::max(described, parameter.offset + parameter.bytes);
  }
  // Described in a way that is not read here.
  if (described < space || (space != 0 && described > space)) kernel.parameters_known = false;
}

}  // namespace reprise::images
