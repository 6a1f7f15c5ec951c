#include "tools/lab/probe/subjects/elf_exports.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

namespace reprise::probe {
namespace {

class Bytes {
 public:
  explicit Bytes(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::optional<std::string> text(uint64_t offset) const {
    if (offset >= bytes_.size()) return std::nullopt;
    const char* begin = bytes_.data() + offset;
    const void* end = std::memchr(begin, 0, bytes_.size() - offset);
    if (!end) return std::nullopt;
    return std::string(begin, static_cast<const char*>(end));
  }

 private:
  std::vector<char> bytes_;
};

bool exported(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK) &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC);
}

bool collect(const Bytes& bytes, const Elf64_Shdr& symbols, const Elf64_Shdr& strings, std::set<std::string>& names) {
  for (uint64_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = bytes.read<Elf64_Sym>(symbols.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return false;
    if (!exported(*symbol)) continue;
    const auto name = bytes.text(strings.sh_offset + symbol->st_name);
    if (!name) return false;
    names.insert(*name);
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> read_exports(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::not_found, "cannot open " + path);
  const Bytes bytes(std::vector<char>(std::istreambuf_iterator<char>(file), {}));
  const Status corrupt(StatusCode::corrupt, path + " is no complete 64-bit shared library");
  const auto header = bytes.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return corrupt;
  }
  std::set<std::string> names;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = bytes.read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return corrupt;
    if (section->sh_type != SHT_DYNSYM) continue;
    const auto strings = bytes.read<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (!strings || !collect(bytes, *section, *strings, names)) return corrupt;
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace reprise::probe
