#include "preload/record/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reprise {
namespace {

const char* id_in_notes(const char* at, const char* end, uint32_t* bytes) noexcept {
  while (at + sizeof(Elf64_Nhdr) <= end) {
    Elf64_Nhdr note;
    std::memcpy(&note, at, sizeof note);
    const char* const name = at + sizeof note;
    const char* const description = name + ((note.n_namesz + 3u) & ~uint32_t{3});
    if (description > end || note.n_descsz > static_cast<size_t>(end - description)) return nullptr;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      *bytes = note.n_descsz;
      return description;
    }
    at = description + ((note.n_descsz + 3u) & ~uint32_t{3});
  }
  return nullptr;
}

// A line of /proc/self/maps: "BEGIN-END rwxp OFFSET DEVICE INODE    PATH". nullptr: not this one, or no file.
const char* file_in_line(const char* line, uint64_t address) noexcept {
  char* end = nullptr;
  const uint64_t from = std::strtoull(line, &end, 16);
  if (end == line || *end != '-') return nullptr;
  const uint64_t to = std::strtoull(end + 1, &end, 16);
  return from <= address && address < to ? std::strchr(end, '/') : nullptr;
}

bool search_lines(int maps, uint64_t address, char* path, size_t capacity) noexcept {
  char text[8192];  // a line is a path and some 80 characters
  size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(maps, text + used, sizeof text - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    used += static_cast<size_t>(got);
    text[used] = '\0';
    char* line = text;
    for (char* end = nullptr; (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      const char* const file = file_in_line(line, address);
      if (file == nullptr) continue;
      const size_t size = std::strlen(file);
      if (size >= capacity) return false;
      std::memcpy(path, file, size + 1);
      return true;
    }
    used -= static_cast<size_t>(line - text);
    std::memmove(text, line, used);
    if (used == sizeof text - 1) return false;
  }
}

}  // namespace

void mapped_file(const void* address, char* path, size_t capacity) noexcept {
  path[0] = '\0';
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  search_lines(maps, reinterpret_cast<uint64_t>(address), path, capacity);
  ::close(maps);
}

void build_id_text(const void* base, char* text, size_t capacity) noexcept {
  text[0] = '\0';
  const auto* const start = static_cast<const char*>(base);
  Elf64_Ehdr header;
  std::memcpy(&header, start, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(start + header.e_phoff);
  uint64_t lowest = ~uint64_t{0};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < lowest) lowest = segments[i].p_vaddr;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE || segments[i].p_vaddr < lowest) continue;
    const char* const notes = start + (segments[i].p_vaddr - lowest);
    uint32_t bytes = 0;
    const char* const id = id_in_notes(notes, notes + segments[i].p_memsz, &bytes);
    if (id == nullptr || capacity < 2 * size_t{bytes} + 1) continue;
    for (uint32_t b = 0; b < bytes; ++b) {
      std::snprintf(text + 2 * size_t{b}, 3, "%02x", static_cast<unsigned char>(id[b]));
    }
    return;
  }
}

}  // namespace reprise
