#include "preload/trace/ending.h"

#include <zstd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "preload/trace/format.h"

namespace reprise::trace {
namespace {

struct Close {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, Close>;

Status no_trace(const std::string& path) {
  return {StatusCode::corrupt, path + ": the beginning of the trace cannot be read; record again"};
}

// The end record is the last one of the last chunk.
void find_end(const std::vector<char>& raw, Ending& ending) {
  for (size_t at = 0; at + sizeof(RecordHeader) <= raw.size();) {
    RecordHeader header{};
    std::memcpy(&header, raw.data() + at, sizeof header);
    if (header.bytes < sizeof header || header.bytes > raw.size() - at) return;
    if (header.kind == RecordKind::end && header.bytes >= sizeof(EndRecord)) {
      EndRecord record{};
      std::memcpy(&record, raw.data() + at, sizeof record);
      ending.ended = true;
      ending.dropped = record.dropped_records;
    }
    at += header.bytes;
  }
}

bool read_chunk(FILE* file, const ChunkHeader& header, std::vector<char>& raw) {
  std::vector<char> packed(header.compressed_bytes);
  if (std::fread(packed.data(), 1, packed.size(), file) != packed.size()) return false;
  raw.resize(header.raw_bytes);
  return ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()) == raw.size();
}

}  // namespace

Result<Ending> read_ending(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"));
  FileHeader head{};
  if (!file || std::fread(&head, sizeof head, 1, file.get()) != 1) return no_trace(path);
  if (std::memcmp(head.magic, kFileMagic, sizeof kFileMagic) != 0) return no_trace(path);
  Ending ending;
  ending.stopped_by = head.stopped_by;
  std::fseek(file.get(), 0, SEEK_END);
  const long size = std::ftell(file.get());
  for (long at = sizeof head; at + static_cast<long>(sizeof(ChunkHeader)) <= size;) {
    ChunkHeader header{};
    if (std::fseek(file.get(), at, SEEK_SET) != 0 || std::fread(&header, sizeof header, 1, file.get()) != 1) break;
    if (header.magic != kChunkMagic || header.raw_bytes > kMaxChunkBytes) break;
    at += static_cast<long>(sizeof header) + header.compressed_bytes;
    if (at != size) continue;
    std::vector<char> raw;
    if (read_chunk(file.get(), header, raw)) find_end(raw, ending);
  }
  return ending;
}

}  // namespace reprise::trace
