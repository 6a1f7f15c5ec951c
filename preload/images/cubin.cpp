// Cubins are ELF files. Kernels are the global functions that carry the "entry" bit; their parameter layouts stand in
// one .nv.info.<kernel> section each; globals are the objects of the .nv.global* and .nv.constant3 sections.
#include <elf.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "preload/images/parsers.h"
#include "preload/trace/signature.h"

namespace reprise::images {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr unsigned char kEntryBit = 0x10;            // of st_other
constexpr unsigned kRelocatableObject = STT_LOPROC;  // what STT_OBJECT is in a linked cubin
constexpr uint64_t kReservedShared = 1024;  // of every kernel from sm_90 on, counted in a linked section's size
constexpr char kReservedSymbol[] = ".nv.reservedSmem.offset0";

// Attributes of .nv.info: format byte, attribute byte, then 16 bits that are the value or (format 4) the payload's
// size.
constexpr uint8_t kValueFormat = 3;
constexpr uint8_t kSizedFormat = 4;
constexpr uint8_t kMaxThreads = 0x05;
constexpr uint8_t kParameterInfo = 0x17;       // ordinal, offset, and a size of 14 bits
constexpr uint8_t kLargeParameterInfo = 0x45;  // the same with 16 bits for the size, and flags above them
constexpr uint8_t kParameterSpace = 0x19;      // bytes from the first parameter to the end of the last
constexpr uint32_t kLargeSizeMask = 0xffff;

struct Section {
  Elf64_Shdr header;
  std::string_view name;
  Bytes data;  // empty where the file has none of its bytes
};

// Memory that has no content before a launch. Linked cubins say NOBITS; relocatable ones have a type for each kind.
constexpr uint32_t kGlobalMemory = SHT_LOPROC + 0x7;
constexpr uint32_t kLocalMemory = SHT_LOPROC + 0x9;
constexpr uint32_t kSharedMemory = SHT_LOPROC + 0xa;
constexpr uint32_t kReservedSharedMemory = SHT_LOPROC + 0x15;

bool is_in_file(const Elf64_Shdr& section) {
  for (const uint32_t type :
       {uint32_t{SHT_NULL}, uint32_t{SHT_NOBITS}, kGlobalMemory, kLocalMemory, kSharedMemory, kReservedSharedMemory}) {
    if (section.sh_type == type) return false;
  }
  return true;
}

Status corrupt(const char* what) { return {StatusCode::corrupt, std::string("cubin: ") + what}; }

Result<std::vector<Section>> read_sections(Bytes bytes, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return corrupt("section headers of an unknown size");
  std::vector<Section> sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = bytes.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return corrupt("section headers beyond the end");
    Bytes data;
    if (is_in_file(*section)) {
      const auto part = bytes.slice(section->sh_offset, section->sh_size);
      if (!part) return corrupt("a section beyond the end");
      data = *part;
    }
    sections.push_back({*section, {}, data});
  }
  if (header.e_shstrndx >= sections.size()) return corrupt("no section names");
  const Bytes names = sections[header.e_shstrndx].data;
  for (auto& section : sections) {
    const auto name = names.text(section.header.sh_name);
    if (!name) return corrupt("a section name beyond the end");
    section.name = *name;
  }
  return sections;
}

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

class CubinReader {
 public:
  CubinReader(std::vector<Section> sections, uint64_t file_bytes, bool linked)
      : sections_(std::move(sections)), linked_(linked), left_(kMostCopies * file_bytes) {
    for (const auto& section : sections_) by_name_.emplace(section.name, &section);
  }

  Result<Image> read() {
    for (const auto& section : sections_) {
      if (section.header.sh_type != SHT_SYMTAB) continue;
      if (section.header.sh_link >= sections_.size()) return corrupt("symbols without names");
      const Bytes names = sections_[section.header.sh_link].data;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.data.size(); at += sizeof(Elf64_Sym)) {
        const Elf64_Sym symbol = *section.data.read<Elf64_Sym>(at);
        const auto name = names.text(symbol.st_name);
        if (!name) return corrupt("a symbol name beyond the end");
        if (!may_copy(name->size())) return corrupt("symbols that share their names");
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
      if (!initial) return corrupt("a global beyond the end of its section");
      if (!may_copy(initial->size())) return corrupt("globals that share their bytes");
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
  const auto header = bytes.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return corrupt("no ELF header");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachineCuda) {
    return Status(StatusCode::unsupported, "cubin: an ELF file, but not for a CUDA device");
  }
  auto sections = read_sections(bytes, *header);
  if (!sections.ok()) return sections.status();
  auto image = CubinReader(std::move(sections.value()), bytes.size(), header->e_type != ET_REL).read();
  if (image.ok()) image.value().content = trace::hash_bytes(bytes.data(), bytes.size());
  return image;
}

}  // namespace reprise::images
