// Builds trace files byte by byte, so that tests can make good, broken and strange ones without the writer. Callers:
// tests of the trace reader, of the command line, fuzz tests.
#pragma once
#include <zstd.h>

#include <cstring>
#include <string>

#include "preload/trace/format.h"
#include "preload/trace/signature.h"

namespace reprise::trace::test {

class TraceBytes {
 public:
  explicit TraceBytes(uint32_t version = kTraceVersion) {
    FileHeader header{};
    std::memcpy(header.magic, kFileMagic, sizeof(kFileMagic));
    header.version = version;
    file_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  }

  // Appends a record with `tail` behind it to the chunk in the making; sets header.bytes.
  template <typename T>
  TraceBytes& add(RecordKind kind, uint64_t sequence, T record, const std::string& tail = {}) {
    const size_t bytes = (sizeof(T) + tail.size() + 7) / 8 * 8;
    record.header.kind = kind;
    record.header.bytes = static_cast<uint32_t>(bytes);
    record.header.sequence = sequence;
    std::string text(reinterpret_cast<const char*>(&record), sizeof(T));
    text += tail;
    text.resize(bytes);
    raw_ += text;
    return *this;
  }
  TraceBytes& info(const std::string& text) {
    InfoRecord record{};
    record.text_bytes = static_cast<uint32_t>(text.size());
    return add(RecordKind::info, 0, record, text);
  }

  TraceBytes& end_chunk() { return chunk_of(raw_); }
  // A chunk with these raw bytes and a right checksum, whatever they are.
  TraceBytes& chunk_of(std::string raw) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1));
    const ChunkHeader header{kChunkMagic, static_cast<uint32_t>(raw.size()), static_cast<uint32_t>(packed.size()), 0,
                             hash_bytes(packed.data(), packed.size())};
    file_.append(reinterpret_cast<const char*>(&header), sizeof(header));
    file_ += packed;
    raw_.clear();
    return *this;
  }

  const std::string& raw() const { return raw_; }
  std::string& bytes() { return file_; }

 private:
  std::string file_;
  std::string raw_;
};

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// One record of every kind, as a small program would leave them: allocate, copy in, launch, wait, copy out, free.
TraceBytes sample_trace();

// All records of a trace's file, taken out of its chunks.
std::string records_of(const std::string& file);

}  // namespace reprise::trace::test
