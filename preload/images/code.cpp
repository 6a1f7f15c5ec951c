#include "preload/images/code.h"

#include <string_view>
#include <utility>

#include "preload/images/parsers.h"
#include "preload/images/sections.h"

namespace reprise::images {
namespace {

constexpr std::string_view kAddressRelocations = ".rela.nv.constant4";
constexpr std::string_view kLiterals = ".nv.constant2";

class CodeReader {
 public:
  explicit CodeReader(const std::vector<Section>& sections) : sections_(sections) {}

  Result<CodeImage> read() {
    for (const Section& section : sections_) {
      if (section.header.sh_type == SHT_SYMTAB && symbols_ == nullptr) symbols_ = &section;
      by_name_.emplace(section.name, &section);
    }
    if (symbols_ == nullptr || symbols_->header.sh_link >= sections_.size()) return corrupt_cubin("no symbols");
    names_ = sections_[symbols_->header.sh_link].data;
    for (uint32_t n = 0; n < symbols_->data.size() / sizeof(Elf64_Sym); ++n) {
      if (!read_symbol(n)) return corrupt_cubin("a symbol name beyond the end");
    }
    for (const Section& section : sections_) {
      if (!read_relocations(section)) return corrupt_cubin("a relocation of a symbol that is not there");
    }
    return std::move(image_);
  }

 private:
  bool read_symbol(uint32_t number) {
    const Elf64_Sym symbol = *symbols_->data.read<Elf64_Sym>(uint64_t{number} * sizeof(Elf64_Sym));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) return true;
    const auto name = names_.text(symbol.st_name);
    if (!name) return false;
    if ((symbol.st_other & kEntryBit) == 0) {
      image_.functions.push_back({number, symbol.st_shndx});
      return true;
    }
    KernelImage described;
    const auto info = by_name_.find(".nv.info." + std::string(*name));
    if (info != by_name_.end()) read_kernel_info(info->second->data, described);
    image_.kernels.push_back({std::string(*name), number, symbol.st_shndx, described.parameters_at,
                              std::move(described.parameters), described.parameters_known});
    return true;
  }

  // With and without an addend; one that is not 0 leads into a symbol, which is enough to know.
  bool read_relocations(const Section& section) {
    const bool explicit_addend = section.header.sh_type == SHT_RELA;
    if (!explicit_addend && section.header.sh_type != SHT_REL) return true;
    if (section.name.find(kLiterals) != std::string_view::npos) image_.relocated_literals = true;
    if (section.name != kAddressRelocations && section.name != ".rel.nv.constant4") return true;
    const uint64_t step = explicit_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (uint64_t at = 0; at + step <= section.data.size(); at += step) {
      const Elf64_Rel relocation = *section.data.read<Elf64_Rel>(at);
      const auto symbol = symbols_->data.read<Elf64_Sym>((relocation.r_info >> 32) * sizeof(Elf64_Sym));
      const auto name = symbol ? names_.text(symbol->st_name) : std::nullopt;
      if (!name) return false;
      image_.addresses.emplace(static_cast<uint32_t>(relocation.r_offset), *name);
    }
    return true;
  }

  const std::vector<Section>& sections_;
  std::unordered_map<std::string, const Section*> by_name_;
  const Section* symbols_ = nullptr;
  Bytes names_;
  CodeImage image_;
};

}  // namespace

Result<CodeImage> parse_code(const std::string& cubin) {
  const auto sections = read_sections(Bytes(cubin.data(), cubin.size()));
  if (!sections.ok()) return sections.status();
  return CodeReader(sections.value()).read();
}

Result<std::vector<std::string>> cubins_of(const std::string& content, uint32_t architecture) {
  const Bytes bytes(content.data(), content.size());
  switch (bytes.read<uint32_t>(0).value_or(0)) {
    case kElfMagic:
      return std::vector<std::string>{content};
    case kFatbinMagic:
      return fatbin_cubins(bytes, architecture);
    default:
      return Status(StatusCode::unsupported, "neither a cubin nor a fatbin");
  }
}

namespace {

Status each_of(const std::vector<std::string>& cubins, const std::function<Status(const std::string&)>& use) {
  for (const std::string& cubin : cubins) {
    if (Status status = use(cubin); !status.ok()) return status;
  }
  return {};
}

// Fatbins stand behind each other, with padding between them.
Status each_in_section(Bytes data, uint32_t architecture, const std::function<Status(const std::string&)>& use,
                       bool* found) {
  constexpr uint64_t kAlignment = 8, kHeader = 16;
  for (uint64_t at = 0; at + kHeader <= data.size();) {
    const uint64_t extent = fatbin_extent(data.data() + at);
    const auto fatbin = data.slice(at, extent);
    if (extent == 0 || !fatbin) {
      at += kAlignment;
      continue;
    }
    at += (extent + kAlignment - 1) / kAlignment * kAlignment;
    const auto cubins = fatbin_cubins(*fatbin, architecture);
    if (!cubins.ok() && cubins.status().code() == StatusCode::unsupported) continue;
    if (!cubins.ok()) return cubins.status();
    *found = true;
    if (Status status = each_of(cubins.value(), use); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status each_cubin(const std::string& content, uint32_t architecture,
                  const std::function<Status(const std::string&)>& use) {
  const Bytes bytes(content.data(), content.size());
  const bool is_program =
      bytes.read<uint32_t>(0) == kElfMagic && bytes.read<uint16_t>(offsetof(Elf64_Ehdr, e_machine)) == EM_X86_64;
  if (!is_program) {
    const auto cubins = cubins_of(content, architecture);
    return cubins.ok() ? each_of(cubins.value(), use) : cubins.status();
  }
  const auto sections = read_elf_sections(bytes);
  if (!sections.ok()) return sections.status();
  bool found = false;
  for (const Section& section : sections.value()) {
    if (section.name != ".nv_fatbin" && section.name != "__nv_relfatbin") continue;
    if (Status status = each_in_section(section.data, architecture, use, &found); !status.ok()) return status;
  }
  if (found) return {};
  return {StatusCode::unsupported, "a program or library without kernels for this architecture"};
}

}  // namespace reprise::images
