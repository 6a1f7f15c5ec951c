// A fatbin: a header, then entries, each a cubin or PTX text for one architecture, as it is or compressed. The layout
// below was read off the files that nvcc 13 writes.
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <string>

#include "preload/images/parsers.h"

namespace reprise::images {
namespace {

enum : uint16_t { kEntryPtx = 1, kEntryCubin = 2 };
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint64_t kFlagExact = 0x100000;  // sm_90a: runs on no other architecture
constexpr uint64_t kMostUncompressed = uint64_t{1} << 31;
constexpr uint64_t kModestUncompressed = uint64_t{64} << 20;  // a large table of zeros in a small file
constexpr uint64_t kBestRatio = 255;                          // of larger ones; LZ4 has no better one

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;     // with padding
  uint32_t compressed_bytes;  // of the payload, where it is compressed
  uint32_t unused0[2];
  uint32_t architecture;  // 90 for sm_90
  uint32_t unused1[2];
  uint64_t flags;
  uint64_t unused2;
  uint64_t uncompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64 && sizeof(FatbinHeader) == 16);

struct FatbinEntry {
  EntryHeader header;
  Bytes payload;
};

Status corrupt_fatbin(const char* what) { return {StatusCode::corrupt, std::string("fatbin: ") + what}; }

Result<std::vector<FatbinEntry>> read_entries(Bytes bytes) {
  const auto header = bytes.read<FatbinHeader>(0);
  if (!header || header->magic != kFatbinMagic) return corrupt_fatbin("no header");
  if (header->header_bytes < sizeof(FatbinHeader)) return corrupt_fatbin("a header that is too short");
  const auto body = bytes.slice(header->header_bytes, header->payload_bytes);
  if (!body) return corrupt_fatbin("the file ends early");
  std::vector<FatbinEntry> entries;
  for (uint64_t at = 0; at + 48 <= body->size();) {
    // Entries that are not compressed may have a header without the last fields.
    EntryHeader entry{};
    const uint64_t there = std::min<uint64_t>(sizeof entry, body->size() - at);
    std::memcpy(&entry, body->data() + at, there);
    if (entry.header_bytes < 48) return corrupt_fatbin("an entry with a header that is too short");
    if (entry.header_bytes < sizeof entry) {
      std::memset(reinterpret_cast<uint8_t*>(&entry) + entry.header_bytes, 0, sizeof entry - entry.header_bytes);
    }
    const auto payload = body->slice(at + entry.header_bytes, entry.payload_bytes);
    if (!payload) return corrupt_fatbin("an entry beyond the end");
    entries.push_back({entry, *payload});
    at += entry.header_bytes + entry.payload_bytes;
  }
  return entries;
}

// NVIDIA's rules of compatibility: a cubin runs on devices of its major version that are not older, PTX on any that is
// not older; both on their own architecture alone where they use what only that one has.
bool runs_on(const EntryHeader& entry, uint32_t architecture) {
  if (entry.kind != kEntryCubin && entry.kind != kEntryPtx) return false;
  if (architecture == kAnyArchitecture || entry.architecture == architecture) return true;
  if (entry.architecture > architecture || (entry.flags & kFlagExact) != 0) return false;
  return entry.kind == kEntryPtx || entry.architecture / 10 == architecture / 10;
}

// The entry's content; `storage` keeps it where it had to be unpacked.
Result<Bytes> unpack(const FatbinEntry& entry, std::vector<uint8_t>& storage) {
  const uint64_t flags = entry.header.flags;
  if ((flags & (kFlagLz4 | kFlagZstd)) == 0) return entry.payload;
  const auto packed = entry.payload.slice(0, entry.header.compressed_bytes);
  const uint64_t size = entry.header.uncompressed_bytes;
  // A file must not make us take far more memory than it can fill.
  const auto can_fill = [&] {
    const bool zstd = (flags & kFlagZstd) != 0;
    if (zstd && ZSTD_getFrameContentSize(packed->data(), packed->size()) != size) return false;
    return size / kBestRatio <= packed->size() || (zstd && size <= kModestUncompressed);
  };
  if (!packed || size > kMostUncompressed || !can_fill())
    return corrupt_fatbin("a compressed entry of an impossible size");
  storage.resize(size);
  if ((flags & kFlagZstd) != 0) {
    const size_t got = ZSTD_decompress(storage.data(), size, packed->data(), packed->size());
    if (ZSTD_isError(got) != 0 || got != size) return corrupt_fatbin("an entry that zstd cannot unpack");
  } else {
    const int got =
        LZ4_decompress_safe(reinterpret_cast<const char*>(packed->data()), reinterpret_cast<char*>(storage.data()),
                            static_cast<int>(packed->size()), static_cast<int>(size));
    if (got < 0 || static_cast<uint64_t>(got) != size) return corrupt_fatbin("an entry that LZ4 cannot unpack");
  }
  return Bytes(storage.data(), storage.size());
}

Result<Image> parse_entry(const FatbinEntry& entry) {
  std::vector<uint8_t> storage;
  const auto content = unpack(entry, storage);
  if (!content.ok()) return content.status();
  if (entry.header.kind == kEntryCubin) return parse_cubin(content.value());
  std::string_view text(reinterpret_cast<const char*>(content.value().data()), content.value().size());
  return parse_ptx(text.substr(0, text.find('\0')));
}

Result<std::vector<FatbinEntry>> best_entries(Bytes bytes, uint32_t architecture) {
  const auto entries = read_entries(bytes);
  if (!entries.ok()) return entries.status();
  // Cubins before PTX, then the newest architecture; several files of that architecture belong together.
  const auto rank = [](const FatbinEntry& entry) {
    return std::pair(entry.header.kind == kEntryCubin, entry.header.architecture);
  };
  const FatbinEntry* best = nullptr;
  for (const auto& entry : entries.value()) {
    if (!runs_on(entry.header, architecture)) continue;
    if (best == nullptr || rank(entry) > rank(*best)) best = &entry;
  }
  if (best == nullptr) return Status(StatusCode::unsupported, "fatbin: neither a cubin nor PTX for this device in it");
  std::vector<FatbinEntry> chosen;
  for (const auto& entry : entries.value()) {
    if (rank(entry) == rank(*best) && runs_on(entry.header, architecture)) chosen.push_back(entry);
  }
  return chosen;
}

}  // namespace

uint64_t fatbin_extent(const void* image) {
  FatbinHeader header;
  std::memcpy(&header, image, sizeof header);
  uint64_t end;
  if (header.magic != kFatbinMagic) return 0;
  return __builtin_add_overflow(header.payload_bytes, header.header_bytes, &end) ? 0 : end;
}

Result<Image> parse_fatbin(Bytes bytes, uint32_t architecture) {
  const auto entries = best_entries(bytes, architecture);
  if (!entries.ok()) return entries.status();
  Image image;
  for (const auto& entry : entries.value()) {
    auto part = parse_entry(entry);
    if (!part.ok()) return part;
    merge_image(image, std::move(part.value()));
  }
  return image;
}

Result<std::vector<std::string>> fatbin_cubins(Bytes bytes, uint32_t architecture) {
  const auto entries = best_entries(bytes, architecture);
  if (!entries.ok()) return entries.status();
  std::vector<std::string> cubins;
  for (const auto& entry : entries.value()) {
    if (entry.header.kind != kEntryCubin)
      return Status(StatusCode::unsupported, "fatbin: only PTX for this device in it");
    std::vector<uint8_t> storage;
    const auto content = unpack(entry, storage);
    if (!content.ok()) return content.status();
    cubins.emplace_back(reinterpret_cast<const char*>(content.value().data()), content.value().size());
  }
  return cubins;
}

}  // namespace reprise::images
