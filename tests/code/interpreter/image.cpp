#include "tests/code/interpreter/image.h"

#include <algorithm>

#include "preload/images/sections.h"

namespace reprise::sass {
namespace {

using images::Section;

std::vector<uint8_t> content_of(const std::vector<Section>& sections, const std::string& name) {
  for (const Section& section : sections) {
    if (section.name != name) continue;
    std::vector<uint8_t> bytes(section.data.data(), section.data.data() + section.data.size());
    bytes.resize(section.header.sh_size);
    return bytes;
  }
  return {};
}

void read_addresses(const std::vector<Section>& sections, const Section& relocations, const Section& symbols,
                    Surroundings& found) {
  const bool with_addend = relocations.header.sh_type == SHT_RELA;
  const uint64_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
  for (uint64_t at = 0; at + step <= relocations.data.size(); at += step) {
    const auto relocation = relocations.data.read<Elf64_Rel>(at);
    const auto symbol = symbols.data.read<Elf64_Sym>((relocation->r_info >> 32) * sizeof(Elf64_Sym));
    if (!symbol || symbol->st_shndx >= sections.size()) continue;
    const std::string_view section = sections[symbol->st_shndx].name;
    if (section != ".nv.global" && section != ".nv.global.init") continue;
    const uint64_t addend = with_addend ? relocations.data.read<uint64_t>(at + 16).value_or(0) : 0;
    found.addresses.push_back(
        {static_cast<uint32_t>(relocation->r_offset), section == ".nv.global.init", symbol->st_value + addend});
  }
}

}  // namespace

Surroundings surroundings_of(const std::string& cubin, const std::string& kernel) {
  Surroundings found;
  const auto sections = images::read_sections(images::Bytes(cubin.data(), cubin.size()));
  if (!sections.ok()) return found;
  found.constants = content_of(sections.value(), ".nv.constant3");
  found.literals = content_of(sections.value(), ".nv.constant2." + kernel);
  if (found.literals.empty()) found.literals = content_of(sections.value(), ".nv.constant2");
  found.initial = content_of(sections.value(), ".nv.global.init");
  found.address_bytes = static_cast<uint32_t>(content_of(sections.value(), ".nv.constant4").size());
  found.shared_bytes = static_cast<uint32_t>(content_of(sections.value(), ".nv.shared." + kernel).size());
  images::KernelImage described;
  const Section* symbols = nullptr;
  for (const Section& section : sections.value()) {
    if (section.header.sh_type == SHT_SYMTAB) symbols = &section;
    if (section.name == ".nv.info." + kernel) images::read_kernel_info(section.data, described);
  }
  found.most_threads = std::clamp(described.max_threads, 1U, 1024U);
  for (const Section& section : sections.value()) {
    if (symbols != nullptr && section.name.ends_with(".nv.constant4") && section.name.starts_with(".rel")) {
      read_addresses(sections.value(), section, *symbols, found);
    }
  }
  return found;
}

}  // namespace reprise::sass
