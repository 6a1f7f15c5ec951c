// Cubins are ELF files. Kernels are the global functions that carry the "entry" bit; their parameter layouts stand in
// one .nv.info.<kernel> section each; globals are the objects of the .nv.global* and .nv.constant3 sections.
#include <string>
#include <unordered_map>

#include "preload/images/parsers.h"
#include "preload/images/sections.h"
#include "preload/trace/signature.h"

namespace reprise::images {
namespace {

constexpr unsigned kRelocatableObject = STT_LOPROC;  // what STT_OBJECT is in a linked cubin
constexpr uint64_t kReservedShared = 1024;  // of every kernel from sm_90 on, counted in a linked section's size
constexpr char kReservedSymbol[] = ".nv.reservedSmem.offset0";

class CubinReader {
 public:
  CubinReader(std::vector<Section> sections, uint64_t file_bytes, bool linked)
      : sections_(std::move(sections)), linked_(linked), left_(kMostCopies * file_bytes) {
    for (const auto& section : sections_) by_name_.emplace(section.name, &section);
  }

  Result<Image> read() {
    for (const auto& section : sections_) {
      if (section.header.sh_type != SHT_SYMTAB) continue;
      if (section.header.sh_link >= sections_.size()) return corrupt_cubin("symbols without names");
      const Bytes names = sections_[section.header.sh_link].data;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.data.size(); at += sizeof(Elf64_Sym)) {
        const Elf64_Sym symbol = *section.data.read<Elf64_Sym>(at);
        const auto name = names.text(symbol.st_name);
        if (!name) return corrupt_cubin("a symbol name beyond the end");
        if (!may_copy(name->size())) return corrupt_cubin("symbols that share their names");
        if (const Status status = read_symbol(symbol, *name); !status.ok()) return status;
      }
    }
    if (linked_ && (reserves_shared_ || find(".nv.shared.reserved.0") != nullptr)) leave_out_reserved();
    return std::move(image_);
  }

 private:
  const Section* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  // Symbols of a real file have bytes of their own; a file must not make us hold far more than it is.
  bool may_copy(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  Status read_symbol(const Elf64_Sym& symbol, std::string_view name) {
    if (name == kReservedSymbol) reserves_shared_ = true;
    if (symbol.st_shndx == SHN_UNDEF && name == kPrintf) image_.prints = true;
    if (symbol.st_shndx == SHN_UNDEF && (name == kMalloc || name == kFree)) image_.allocates = true;
    const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < sections_.size();
    if (!defined || name.empty()) return {};
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (type == STT_FUNC && (symbol.st_other & kEntryBit) != 0) add_kernel(name);
    if (type == STT_OBJECT || type == kRelocatableObject) return add_global(symbol, name);
    return {};
  }

  void add_kernel(std::string_view name) {
    KernelImage kernel;
    kernel.name = name;
    if (const Section* info = find(".nv.info." + kernel.name)) read_kernel_info(info->data, kernel);
    if (const Section* shared = find(".nv.shared." + kernel.name)) {
      kernel.static_shared_bytes = static_cast<uint32_t>(shared->header.sh_size);
    }
    image_.kernels.push_back(std::move(kernel));
  }

  void leave_out_reserved() {
    for (KernelImage& kernel : image_.kernels) {
      if (kernel.static_shared_bytes >= kReservedShared) kernel.static_shared_bytes -= kReservedShared;
    }
  }

  Status add_global(const Elf64_Sym& symbol, std::string_view name) {
    const Section& section = sections_[symbol.st_shndx];
    const bool constant = section.name == ".nv.constant3";
    if (!constant && section.name != ".nv.global" && section.name != ".nv.global.init") return {};
    GlobalImage global;
    global.name = name;
    global.bytes = symbol.st_size;
    global.constant = constant;
    if (is_in_file(section.header)) {
      const auto initial = section.data.slice(symbol.st_value, symbol.st_size);
      if (!initial) return corrupt_cubin("a global beyond the end of its section");
      if (!may_copy(initial->size())) return corrupt_cubin("globals that share their bytes");
      global.initial.assign(initial->data(), initial->data() + initial->size());
    }
    image_.globals.push_back(std::move(global));
    return {};
  }

  static constexpr uint64_t kMostCopies = 4;  // of the file's bytes
  std::vector<Section> sections_;
  const bool linked_;
  bool reserves_shared_ = false;
  uint64_t left_;  // that may still be copied
  std::unordered_map<std::string_view, const Section*> by_name_;
  Image image_;
};

}  // namespace

uint64_t elf_extent(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  uint64_t end = sizeof header;
  const auto reach = [&end](uint64_t offset, uint64_t size) {
    uint64_t last;
    if (!__builtin_add_overflow(offset, size, &last) && last > end) end = last;
  };
  reach(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  reach(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return end;
  const auto* bytes = static_cast<const uint8_t*>(image);
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
    if (is_in_file(section)) reach(section.sh_offset, section.sh_size);
  }
  return end;
}

Result<Image> parse_cubin(Bytes bytes) {
  auto sections = read_sections(bytes);
  if (!sections.ok()) return sections.status();
  const auto header = bytes.read<Elf64_Ehdr>(0);
  auto image = CubinReader(std::move(sections.value()), bytes.size(), header->e_type != ET_REL).read();
  if (image.ok()) image.value().content = trace::hash_bytes(bytes.data(), bytes.size());
  return image;
}

}  // namespace reprise::images
