// Which executable is this? One number per program file, the same in the shim (of /proc/self/exe), in the planner and
// in the launcher, so that a plan is only used for the program it was made for. Header only; nothing here throws or
// allocates.
#pragma once
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "preload/trace/signature.h"

namespace reprise::trace {
namespace identity_detail {

inline bool read_exactly(int file, void* to, size_t bytes, uint64_t offset) noexcept {
  return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// Hash of the GNU build id in one PT_NOTE segment, 0 when there is none. Notes are 4-byte aligned name and description.
inline uint64_t build_id_of_notes(int file, uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t end = offset + bytes;
  while (offset + sizeof(Elf64_Nhdr) <= end) {
    Elf64_Nhdr note;
    if (!read_exactly(file, &note, sizeof note, offset)) return 0;
    const uint64_t name = offset + sizeof note;
    const uint64_t description = name + ((note.n_namesz + 3u) & ~uint64_t{3});
    char owner[4] = {};
    unsigned char id[64];
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && read_exactly(file, owner, 4, name) &&
        std::memcmp(owner, "GNU", 4) == 0 && note.n_descsz > 0 && note.n_descsz <= sizeof id &&
        read_exactly(file, id, note.n_descsz, description)) {
      return hash_bytes(id, note.n_descsz);
    }
    offset = description + ((note.n_descsz + 3u) & ~uint64_t{3});
  }
  return 0;
}

inline uint64_t build_id(int file) noexcept {
  Elf64_Ehdr header;
  if (!read_exactly(file, &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return 0;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_exactly(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return 0;
    if (segment.p_type != PT_NOTE) continue;
    if (const uint64_t hash = build_id_of_notes(file, segment.p_offset, segment.p_filesz)) return hash;
  }
  return 0;
}

inline uint64_t content_hash(int file) noexcept {
  unsigned char block[16384];
  uint64_t hash = 0;
  for (uint64_t offset = 0;;) {
    const ssize_t got = pread(file, block, sizeof block, static_cast<off_t>(offset));
    if (got < 0) return 0;
    if (got == 0) return hash;
    hash = hash_bytes(block, static_cast<size_t>(got), hash);
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace identity_detail

// Hash of the file's ELF build id, or of its content where it has none. 0: it cannot be read.
inline uint64_t program_identity(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  uint64_t hash = identity_detail::build_id(file);
  if (hash == 0) hash = identity_detail::content_hash(file);
  close(file);
  return hash;
}

// The text form, as the trace's info line "program.hash" has it: 16 hexadecimal digits and a zero byte.
inline void format_identity(uint64_t hash, char text[17]) noexcept {
  std::snprintf(text, 17, "%016llx", static_cast<unsigned long long>(hash));
}

}  // namespace reprise::trace
