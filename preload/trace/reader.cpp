#include "preload/trace/reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "preload/files/system_words.h"
#include "preload/trace/signature.h"

namespace reprise::trace {
namespace {

// The bytes of one record, read front to back. Nothing is read beyond them.
class RecordBytes {
 public:
  RecordBytes(const char* begin, size_t size) : begin_(begin), size_(size) {}

  template <typename T>
  bool read(T* value) {
    if (size_ < sizeof(T)) return false;
    std::memcpy(value, begin_, sizeof(T));
    skip(sizeof(T));
    return true;
  }
  template <typename T>
  bool read_array(std::vector<T>* values, uint64_t count) {
    if (count > size_ / sizeof(T)) return false;
    values->resize(count);
    if (count > 0) std::memcpy(values->data(), begin_, count * sizeof(T));
    skip(count * sizeof(T));
    return true;
  }
  bool read_text(std::string* text, uint64_t bytes) {
    if (bytes > size_) return false;
    text->assign(begin_, bytes);
    skip(bytes);
    return true;
  }

 private:
  void skip(size_t bytes) {
    begin_ += bytes;
    size_ -= bytes;
  }
  const char* begin_;
  size_t size_;
};

// Puts (id, value) pairs in place as index id - 1. Ids come without holes; a trace that lost records has a few.
template <typename T>
bool place_by_id(std::vector<std::pair<uint32_t, T>>&& found, std::vector<T>* placed) {
  uint64_t largest = 0;
  for (const auto& [id, value] : found) largest = std::max<uint64_t>(largest, id);
  if (largest > 2 * found.size() + 4096) return false;
  placed->resize(largest);
  for (auto& [id, value] : found) (*placed)[id - 1] = std::move(value);
  return true;
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  Status chunks(std::string_view bytes);
  Trace finish(Status tail);

 private:
  Status chunk(const ChunkHeader& header, const char* payload, uint64_t at);
  bool record(const RecordHeader& header, RecordBytes bytes);
  bool info(RecordBytes bytes);
  bool function(RecordBytes bytes);
  bool kernel(RecordBytes bytes);
  bool call_site(RecordBytes bytes);
  bool op(RecordBytes bytes);
  bool mark(RecordBytes bytes);
  bool activity(RecordBytes bytes);
  bool end(RecordBytes bytes);
  bool gap(RecordBytes bytes);
  template <typename E>
  bool plain_event(RecordBytes bytes);

  Status error(StatusCode code, uint64_t at, const std::string& what) const {
    return {code, fmt::format("{}: {} at byte {}", name_, what, at)};
  }

  std::string name_;
  Trace trace_;
  std::vector<std::pair<uint32_t, TracedFunction>> functions_;
  std::vector<std::pair<uint32_t, std::string>> call_sites_;
  std::unordered_map<uint32_t, uint64_t> identities_;  // by function
  std::vector<char> raw_;
};

Status Parser::chunks(std::string_view bytes) {
  uint64_t at = sizeof(FileHeader);
  while (at < bytes.size()) {
    ChunkHeader header{};
    if (bytes.size() - at < sizeof(header)) return error(StatusCode::truncated, at, "a chunk header is cut short");
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    if (header.magic != kChunkMagic) return error(StatusCode::corrupt, at, "no chunk begins");
    if (header.raw_bytes > kMaxChunkBytes) {
      return error(StatusCode::corrupt, at, fmt::format("a chunk claims {} bytes", header.raw_bytes));
    }
    if (header.compressed_bytes > bytes.size() - at - sizeof(header)) {
      return error(StatusCode::truncated, at, "a chunk is cut short");
    }
    if (Status status = chunk(header, bytes.data() + at + sizeof(header), at); !status.ok()) return status;
    at += sizeof(header) + header.compressed_bytes;
  }
  return {};
}

Status Parser::chunk(const ChunkHeader& header, const char* payload, uint64_t at) {
  if (hash_bytes(payload, header.compressed_bytes) != header.checksum) {
    return error(StatusCode::corrupt, at, "a chunk fails its checksum");
  }
  raw_.resize(header.raw_bytes);
  const size_t size = ZSTD_decompress(raw_.data(), raw_.size(), payload, header.compressed_bytes);
  if (ZSTD_isError(size) != 0 || size != header.raw_bytes) {
    return error(StatusCode::corrupt, at, "a chunk does not decompress");
  }
  size_t position = 0;
  while (position < size) {
    RecordHeader record_header{};
    const size_t left = size - position;
    if (left < sizeof(record_header)) return error(StatusCode::corrupt, at, "a record is cut short in the chunk");
    std::memcpy(&record_header, raw_.data() + position, sizeof(record_header));
    const uint32_t bytes = record_header.bytes;
    if (bytes < sizeof(record_header) || bytes % 8 != 0 || bytes > left) {
      return error(StatusCode::corrupt, at, fmt::format("a record claims {} bytes in the chunk", bytes));
    }
    if (!record(record_header, {raw_.data() + position, bytes})) {
      return error(StatusCode::corrupt, at,
                   fmt::format("a record of kind {} contradicts itself in the chunk",
                               static_cast<unsigned>(record_header.kind)));
    }
    position += bytes;
  }
  return {};
}

bool Parser::record(const RecordHeader& header, RecordBytes bytes) {
  switch (header.kind) {
    case RecordKind::info:
      return info(bytes);
    case RecordKind::function:
      return function(bytes);
    case RecordKind::call_site:
      return call_site(bytes);
    case RecordKind::stream:
      return bytes.read(&trace_.streams.emplace_back());
    case RecordKind::allocate:
      return plain_event<Allocate>(bytes);
    case RecordKind::free:
      return plain_event<Free>(bytes);
    case RecordKind::op:
      return op(bytes);
    case RecordKind::order:
      return plain_event<Order>(bytes);
    case RecordKind::activity:
      return activity(bytes);
    case RecordKind::mark:
      return mark(bytes);
    case RecordKind::end:
      return end(bytes);
    case RecordKind::gap:
      return gap(bytes);
    case RecordKind::kernel:
      return kernel(bytes);
  }
  ++trace_.unknown;
  return true;
}

bool Parser::info(RecordBytes bytes) {
  InfoRecord record{};
  std::string text;
  if (!bytes.read(&record) || !bytes.read_text(&text, record.text_bytes)) return false;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return false;
  trace_.info[text.substr(0, equals)] = text.substr(equals + 1);
  return true;
}

bool Parser::function(RecordBytes bytes) {
  FunctionRecord record{};
  TracedFunction function;
  if (!bytes.read(&record) || !bytes.read_array(&function.parameters, record.parameter_count) ||
      !bytes.read_text(&function.name, record.name_bytes) || record.function == 0) {
    return false;
  }
  function.id = record.function;
  function.parameters_known = record.parameter_known != 0;
  functions_.emplace_back(function.id, std::move(function));
  return true;
}

bool Parser::kernel(RecordBytes bytes) {
  KernelRecord record{};
  if (!bytes.read(&record)) return false;
  identities_[record.function] = record.identity;
  return true;
}

bool Parser::call_site(RecordBytes bytes) {
  CallSiteRecord record{};
  std::string text;
  if (!bytes.read(&record) || !bytes.read_text(&text, record.text_bytes) || record.call_site == 0) return false;
  call_sites_.emplace_back(record.call_site, std::move(text));
  return true;
}

bool Parser::op(RecordBytes bytes) {
  Op op{};
  if (!bytes.read(&op.record) || !bytes.read_array(&op.accesses, op.record.access_count) ||
      !bytes.read_array(&op.parameters, op.record.parameter_bytes)) {
    return false;
  }
  trace_.events.emplace_back(std::move(op));
  return true;
}

bool Parser::mark(RecordBytes bytes) {
  Mark mark{};
  if (!bytes.read(&mark.record) || !bytes.read_text(&mark.text, mark.record.text_bytes)) return false;
  trace_.events.emplace_back(std::move(mark));
  return true;
}

bool Parser::activity(RecordBytes bytes) {
  ActivityRecord record{};
  if (!bytes.read(&record)) return false;
  // One op may run as several pieces of device work (a graph): its time spans them all.
  auto [place, inserted] = trace_.activities.try_emplace(record.header.sequence, record);
  if (!inserted) {
    place->second.start_ns = std::min(place->second.start_ns, record.start_ns);
    place->second.end_ns = std::max(place->second.end_ns, record.end_ns);
  }
  return record.end_ns >= record.start_ns;
}

bool Parser::end(RecordBytes bytes) {
  EndRecord record{};
  if (!bytes.read(&record)) return false;
  trace_.ended = true;
  trace_.dropped = record.dropped_records;
  return true;
}

bool Parser::gap(RecordBytes bytes) {
  GapRecord record{};
  if (!bytes.read(&record)) return false;
  (record.records == 0 ? trace_.pauses : trace_.gaps).push_back(record);
  return true;
}

template <typename E>
bool Parser::plain_event(RecordBytes bytes) {
  E event{};
  if (!bytes.read(&event.record)) return false;
  trace_.events.emplace_back(std::move(event));
  return true;
}

Trace Parser::finish(Status tail) {
  trace_.tail = std::move(tail);
  const auto misplaced = [&](const char* what) {
    if (trace_.tail.ok()) trace_.tail = {StatusCode::corrupt, fmt::format("{}: the {} ids have holes", name_, what)};
  };
  for (auto& [id, function] : functions_) {
    if (const auto found = identities_.find(id); found != identities_.end()) function.identity = found->second;
  }
  if (!place_by_id(std::move(functions_), &trace_.functions)) misplaced("function");
  if (!place_by_id(std::move(call_sites_), &trace_.call_sites)) misplaced("call site");
  const auto earlier = [](const Event& left, const Event& right) { return sequence_of(left) < sequence_of(right); };
  if (!std::is_sorted(trace_.events.begin(), trace_.events.end(), earlier)) {
    std::stable_sort(trace_.events.begin(), trace_.events.end(), earlier);
  }
  std::stable_sort(
      trace_.streams.begin(), trace_.streams.end(),
      [](const StreamRecord& left, const StreamRecord& right) { return left.header.sequence < right.header.sequence; });
  return std::move(trace_);
}

Result<std::string> read_file(const std::string& path) {
  const auto refuse = [&](StatusCode code) {
    return Status(code, fmt::format("cannot read the trace {}: {}", path, system_words(errno)));
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return refuse(errno == ENOENT ? StatusCode::not_found : StatusCode::io_error);
  std::string bytes;
  std::vector<char> block(1u << 20);
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) bytes.append(block.data(), count);
  if (std::ferror(file.get()) != 0) return refuse(StatusCode::io_error);
  return bytes;
}

}  // namespace

uint64_t sequence_of(const Event& event) {
  return std::visit([](const auto& one) { return one.record.header.sequence; }, event);
}

const TracedFunction* find_function(const Trace& trace, uint32_t id) {
  if (id == 0 || id > trace.functions.size() || trace.functions[id - 1].id != id) return nullptr;
  return &trace.functions[id - 1];
}

Result<Trace> parse_trace(std::string_view bytes, const std::string& name) {
  FileHeader header{};
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kFileMagic, sizeof(kFileMagic)) != 0) {
    return Status(StatusCode::corrupt, fmt::format("{} is not a trace of Reprise", name));
  }
  if (header.version != kTraceVersion) {
    return Status(StatusCode::unsupported, fmt::format("{} is a trace of version {}; this build reads version {}", name,
                                                       header.version, kTraceVersion));
  }
  Parser parser(name);
  Status tail = parser.chunks(bytes);
  return parser.finish(std::move(tail));
}

Result<Trace> read_trace(const std::string& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  return parse_trace(bytes.value(), path);
}

}  // namespace reprise::trace
