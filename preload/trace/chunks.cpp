#include "preload/trace/chunks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "preload/files/out_of_the_way.h"
#include "preload/trace/signature.h"

namespace reprise::trace {
namespace {

char* map_bytes(size_t bytes) noexcept {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

}  // namespace

const char* ChunkFile::open(const char* path) noexcept {
  file_ = move_out_of_the_way(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file_ < 0) return "cannot open the trace";
  struct stat status {};
  if (::fstat(file_, &status) != 0) return "cannot open the trace";
  device_ = status.st_dev;
  inode_ = status.st_ino;
  packed_capacity_ = sizeof(ChunkHeader) + ZSTD_compressBound(kChunkBytes);
  raw_ = map_bytes(kChunkBytes);
  packed_ = map_bytes(packed_capacity_);
  compressor_ = ZSTD_createCCtx();
  if (raw_ == nullptr || packed_ == nullptr || compressor_ == nullptr) {
    errno = ENOMEM;
    return "no memory to record into the trace";
  }
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof(kFileMagic));
  header.version = kTraceVersion;
  if (!write_all(reinterpret_cast<const char*>(&header), sizeof(header))) {
    errno = problem_errno_;
    return "cannot write the trace";
  }
  return nullptr;
}

bool ChunkFile::append(const RecordHeader* record) noexcept {
  if (raw_ == nullptr) return false;
  if (raw_bytes_ + record->bytes > kChunkBytes && !write_chunk()) return false;
  std::memcpy(raw_ + raw_bytes_, record, record->bytes);
  raw_bytes_ += record->bytes;
  if (record->kind == RecordKind::op) ++op_count_;
  return true;
}

bool ChunkFile::write_chunk() noexcept {
  if (problem_ != nullptr || compressor_ == nullptr) return false;
  if (raw_bytes_ == 0) return true;
  char* payload = packed_ + sizeof(ChunkHeader);
  const size_t bytes =
      ZSTD_compressCCtx(compressor_, payload, packed_capacity_ - sizeof(ChunkHeader), raw_, raw_bytes_, 1);
  if (ZSTD_isError(bytes) != 0) return fail("cannot compress the trace", ENOMEM);
  const ChunkHeader header{kChunkMagic, raw_bytes_, static_cast<uint32_t>(bytes), 0, hash_bytes(payload, bytes)};
  std::memcpy(packed_, &header, sizeof(header));
  raw_bytes_ = 0;
  return still_ours() && write_all(packed_, sizeof(header) + bytes);
}

// The program may have closed our descriptor and reused its number: its file must not get our bytes.
bool ChunkFile::still_ours() noexcept {
  struct stat status {};
  if (::fstat(file_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) return true;
  file_ = -1;
  return fail("the program closed the trace file", EBADF);
}

bool ChunkFile::write_all(const char* bytes, size_t size) noexcept {
  size_t done = 0;
  while (done < size) {
    const ssize_t written = ::write(file_, bytes + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      (void)!::ftruncate(file_, static_cast<off_t>(file_end_));
      mark_stopped(error);
      return fail("cannot write the trace", error);
    }
    done += static_cast<size_t>(written);
  }
  file_end_ += size;
  return true;
}

// In the header, which is there already: a full disk has room for that.
void ChunkFile::mark_stopped(int error) noexcept {
  const auto number = static_cast<uint32_t>(error);
  if (file_end_ < sizeof(FileHeader)) return;
  (void)!::pwrite(file_, &number, sizeof number, offsetof(FileHeader, stopped_by));
}

bool ChunkFile::fail(const char* what, int error) noexcept {
  problem_ = what;
  problem_errno_ = error;
  return false;
}

void ChunkFile::forget() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void ChunkFile::close() noexcept {
  forget();
  ZSTD_freeCCtx(compressor_);
  compressor_ = nullptr;
  if (raw_ != nullptr) ::munmap(raw_, kChunkBytes);
  if (packed_ != nullptr) ::munmap(packed_, packed_capacity_);
  raw_ = nullptr;
  packed_ = nullptr;
  raw_bytes_ = 0;
}

}  // namespace reprise::trace
