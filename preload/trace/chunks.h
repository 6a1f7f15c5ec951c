// Packs records into checksummed, compressed chunks and appends them to the file. Caller: the writer thread alone, but
// for open(). On a failure the file is cut back to its last whole chunk.
#pragma once
#include <sys/types.h>
#include <zstd.h>

#include <cstdint>

#include "preload/trace/format.h"

namespace reprise::trace {

class ChunkFile {
 public:
  // Creates or truncates `path` and writes the file header. nullptr, or a static line that says what failed (errno
  // tells why).
  const char* open(const char* path) noexcept;

  // Appends a record to the chunk in the making; writes that chunk first when the record no longer fits.
  // false: writing failed (problem()).
  bool append(const RecordHeader* record) noexcept;
  // Writes the chunk in the making, if it has any record.
  bool write_chunk() noexcept;
  bool empty() const noexcept { return raw_bytes_ == 0; }
  bool large() const noexcept { return raw_bytes_ >= kChunkBytes / 2; }
  void close() noexcept;
  // In a fork child: gives the descriptor back and touches nothing else, as the parent may have been in the midst of
  // it.
  void forget() noexcept;

  const char* problem() const noexcept { return problem_; }
  int problem_errno() const noexcept { return problem_errno_; }
  uint64_t op_count() const noexcept { return op_count_; }
  // Ends the writing for good. Returns false.
  bool fail(const char* what, int error) noexcept;

 private:
  bool still_ours() noexcept;
  bool write_all(const char* bytes, size_t size) noexcept;
  void mark_stopped(int error) noexcept;

  static constexpr uint32_t kChunkBytes = 1u << 20;

  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t file_end_ = 0;
  char* raw_ = nullptr;
  uint32_t raw_bytes_ = 0;
  char* packed_ = nullptr;  // ChunkHeader and payload
  size_t packed_capacity_ = 0;
  ZSTD_CCtx* compressor_ = nullptr;
  uint64_t op_count_ = 0;
  const char* problem_ = nullptr;
  int problem_errno_ = 0;
};

}  // namespace reprise::trace
