#include "preload/trace/write.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "preload/files/system_words.h"
#include "preload/trace/chunks.h"

namespace reprise::trace {
namespace {

class TraceFile {
 public:
  Status open(const std::string& path) {
    path_ = path;
    const char* const problem = file_.open(path.c_str());
    return problem == nullptr ? Status() : error(problem, errno);
  }
  Status close() {
    const bool written = file_.write_chunk();
    Status status = written ? Status() : error(file_.problem(), file_.problem_errno());
    file_.close();
    return status;
  }

  // A record with what follows its struct; what fails is told by close().
  template <typename T>
  void add(RecordKind kind, uint64_t sequence, T record, std::initializer_list<std::string_view> tails = {}) {
    bytes_.assign(reinterpret_cast<const char*>(&record), sizeof record);
    for (const std::string_view tail : tails) bytes_ += tail;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    RecordHeader header = record.header;
    header.kind = kind;
    header.bytes = static_cast<uint32_t>(bytes_.size());
    header.sequence = sequence;
    std::memcpy(bytes_.data(), &header, sizeof header);
    file_.append(reinterpret_cast<const RecordHeader*>(bytes_.data()));
  }
  template <typename T>
  void add(RecordKind kind, const T& record, std::initializer_list<std::string_view> tails = {}) {
    add(kind, record.header.sequence, record, tails);
  }
  uint64_t op_count() const { return file_.op_count(); }

 private:
  Status error(const char* what, int number) const {
    return {StatusCode::io_error, fmt::format("{}: {}: {}", path_, what, system_words(number))};
  }

  std::string path_;
  std::string bytes_;  // of one record
  ChunkFile file_;
};

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

uint32_t size_of(const std::string& text) { return static_cast<uint32_t>(text.size()); }

void write_info(const Trace& trace, TraceFile& file) {
  for (const auto& [key, value] : std::map<std::string, std::string>(trace.info.begin(), trace.info.end())) {
    const std::string text = fmt::format("{}={}", key, value);
    InfoRecord record{};
    record.text_bytes = size_of(text);
    file.add(RecordKind::info, record, {text});
  }
}

void write_function(const TracedFunction& function, TraceFile& file) {
  if (function.id == 0) return;  // its record is missing
  FunctionRecord record{};
  record.function = function.id;
  record.parameter_count = static_cast<uint32_t>(function.parameters.size());
  record.parameter_known = function.parameters_known ? 1 : 0;
  record.name_bytes = size_of(function.name);
  file.add(RecordKind::function, record, {bytes_of(function.parameters), function.name});
  if (function.identity == 0) return;
  KernelRecord kernel{};
  kernel.function = function.id;
  kernel.identity = function.identity;
  file.add(RecordKind::kernel, kernel);
}

void write_call_sites(const Trace& trace, TraceFile& file) {
  for (size_t i = 0; i < trace.call_sites.size(); ++i) {
    if (trace.call_sites[i].empty()) continue;
    CallSiteRecord record{};
    record.call_site = static_cast<uint32_t>(i + 1);
    record.text_bytes = size_of(trace.call_sites[i]);
    file.add(RecordKind::call_site, record, {trace.call_sites[i]});
  }
}

void write_event(const Event& event, TraceFile& file) {
  if (const auto* op = std::get_if<Op>(&event)) {
    OpRecord record = op->record;
    record.access_count = static_cast<uint32_t>(op->accesses.size());
    record.parameter_bytes = static_cast<uint32_t>(op->parameters.size());
    file.add(RecordKind::op, record, {bytes_of(op->accesses), bytes_of(op->parameters)});
  } else if (const auto* allocate = std::get_if<Allocate>(&event)) {
    file.add(RecordKind::allocate, allocate->record);
  } else if (const auto* release = std::get_if<Free>(&event)) {
    file.add(RecordKind::free, release->record);
  } else if (const auto* order = std::get_if<Order>(&event)) {
    file.add(RecordKind::order, order->record);
  } else {
    const auto& mark = std::get<Mark>(event);
    MarkRecord record = mark.record;
    record.text_bytes = size_of(mark.text);
    file.add(RecordKind::mark, record, {mark.text});
  }
}

}  // namespace

Status write_trace(const Trace& trace, const std::string& path) {
  TraceFile file;
  if (Status opened = file.open(path); !opened.ok()) return opened;
  write_info(trace, file);
  for (const TracedFunction& function : trace.functions) write_function(function, file);
  write_call_sites(trace, file);
  for (const StreamRecord& stream : trace.streams) file.add(RecordKind::stream, stream);
  for (const Event& event : trace.events) {
    write_event(event, file);
    const auto activity = trace.activities.find(sequence_of(event));
    if (std::holds_alternative<Op>(event) && activity != trace.activities.end()) {
      file.add(RecordKind::activity, activity->second);
    }
  }
  for (const auto* list : {&trace.gaps, &trace.pauses}) {
    for (const GapRecord& gap : *list) file.add(RecordKind::gap, gap);
  }
  if (trace.ended) {
    EndRecord end{};
    end.dropped_records = trace.dropped;
    end.op_count = file.op_count();
    file.add(RecordKind::end, UINT64_MAX, end);
  }
  return file.close();
}

}  // namespace reprise::trace
