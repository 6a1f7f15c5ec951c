// The text form of a trace: one line per record, sorted, nothing that depends on hash tables. docs/FORMAT.md explains
// the columns.
#include <fmt/format.h>

#include <iterator>
#include <map>

#include "preload/trace/names.h"
#include "preload/trace/reader.h"

namespace reprise::trace {
namespace {

using Out = std::back_insert_iterator<std::string>;

const char* mode_text(uint32_t mode) {
  if ((mode & (kAccessRead | kAccessWrite)) == (kAccessRead | kAccessWrite)) return "rw";
  if ((mode & kAccessWrite) != 0) return "w";
  return (mode & kAccessRead) != 0 ? "r" : "-";
}

class TextForm {
 public:
  explicit TextForm(const Trace& trace) : trace_(trace) {}
  std::string write();

 private:
  void head();
  void tail();
  void function(const TracedFunction& function);
  void accesses(const Op& op);
  void parameters(const Op& op);
  void op_flags(uint16_t flags);
  void event(const Allocate& event);
  void event(const Free& event);
  void event(const Op& event);
  void event(const Order& event);
  void event(const Mark& event);

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(Out(text_), format, std::forward<Arguments>(arguments)...);
  }
  // Sequence, then microseconds since the first event.
  void begin(const RecordHeader& header, uint64_t time_ns) {
    const auto since = static_cast<int64_t>(time_ns - first_ns_);
    add("{} +{}.{:03} ", header.sequence, since / 1000, since < 0 ? -since % 1000 : since % 1000);
  }

  const Trace& trace_;
  std::string text_;
  uint64_t first_ns_ = 0;
};

void TextForm::head() {
  for (const auto& [key, value] : std::map<std::string, std::string>(trace_.info.begin(), trace_.info.end())) {
    add("info {}={}\n", escaped(key), escaped(value));
  }
  for (const TracedFunction& one : trace_.functions) {
    if (one.id != 0) function(one);
  }
  for (size_t i = 0; i < trace_.call_sites.size(); ++i) {
    if (!trace_.call_sites[i].empty()) add("call_site {} {}\n", i + 1, escaped(trace_.call_sites[i]));
  }
  for (const StreamRecord& stream : trace_.streams) {
    add("stream {} {} sequence={}{} priority={}\n", stream.stream, stream.created != 0 ? "created" : "destroyed",
        stream.header.sequence, stream.non_blocking != 0 ? " non_blocking" : "", stream.priority);
  }
}

void TextForm::function(const TracedFunction& function) {
  add("function {} {} parameters=", function.id, escaped(function.name));
  if (!function.parameters_known) add("?");
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    add("{}{}+{}", i == 0 ? "" : ",", function.parameters[i].offset, function.parameters[i].bytes);
  }
  if (function.identity != 0) add(" kernel={:016x}", function.identity);
  add(" # {}\n", escaped(short_name(function.name)));
}

void TextForm::event(const Allocate& event) {
  const AllocateRecord& record = event.record;
  begin(record.header, record.time_ns);
  add("allocate #{} {} at {:#x} {} device={} stream={} site={}\n", record.allocation, record.size, record.address,
      name_of(record.origin), record.device, record.stream, record.call_site);
}

void TextForm::event(const Free& event) {
  begin(event.record.header, event.record.time_ns);
  add("free #{} {} stream={}\n", event.record.allocation, name_of(event.record.origin), event.record.stream);
}

void TextForm::accesses(const Op& op) {
  add(" [");
  for (size_t i = 0; i < op.accesses.size(); ++i) {
    const AccessRecord& access = op.accesses[i];
    add("{}#{}+{}:{}", i == 0 ? "" : " ", access.allocation, access.offset, mode_text(access.mode));
    if (access.size != 0) add(":{}", access.size);
    if (access.parameter_offset != kNoParameter) add("@{}", access.parameter_offset);
  }
  add("]");
}

void TextForm::parameters(const Op& op) {
  if (op.parameters.empty()) return;
  constexpr size_t kShown = 64;
  constexpr char kDigits[] = "0123456789abcdef";
  add(" parameters={}:", op.parameters.size());
  for (size_t i = 0; i < op.parameters.size() && i < kShown; ++i) {
    text_ += kDigits[op.parameters[i] >> 4];
    text_ += kDigits[op.parameters[i] & 15];
  }
  if (op.parameters.size() > kShown) add("...");
}

void TextForm::op_flags(uint16_t flags) {
  if ((flags & kOpSynchronous) != 0) add(" synchronous");
  if ((flags & kOpHostVisible) != 0) add(" host_visible");
  if ((flags & kOpOpaque) != 0) add(" opaque");
  if ((flags & kOpDeclared) != 0) add(" declared");
  if ((flags & kOpFailed) != 0) add(" failed");
}

void TextForm::event(const Op& event) {
  const OpRecord& record = event.record;
  begin(record.header, record.time_ns);
  add("{}", name_of(record.op));
  if (record.op == OpKind::launch) {
    const TracedFunction* function = find_function(trace_, record.function);
    add(" {}:{} grid={},{},{} block={},{},{} shared={}", record.function,
        function != nullptr ? escaped(short_name(function->name)) : "?", record.grid[0], record.grid[1], record.grid[2],
        record.block[0], record.block[1], record.block[2], record.shared_bytes);
  } else {
    add(" {}", record.size);
  }
  add(" device={} stream={} thread={} site={} signature={:016x}", record.device, record.stream, record.thread,
      record.call_site, record.signature);
  op_flags(record.header.flags);
  accesses(event);
  parameters(event);
  if (const auto found = trace_.activities.find(record.header.sequence); found != trace_.activities.end()) {
    add(" ran={}ns from={}", found->second.end_ns - found->second.start_ns, found->second.start_ns);
  }
  add("\n");
}

void TextForm::event(const Order& event) {
  const OrderRecord& record = event.record;
  begin(record.header, record.time_ns);
  add("{} event={} stream={}\n", name_of(record.order), record.event, record.stream);
}

void TextForm::event(const Mark& event) {
  begin(event.record.header, event.record.time_ns);
  add("mark depth={} {}\n", event.record.depth, escaped(event.text));
}

void TextForm::tail() {
  for (const GapRecord& gap : trace_.gaps) {
    add("gap {} records between calls {} and {}\n", gap.records, gap.after_sequence, gap.header.sequence);
  }
  for (const GapRecord& pause : trace_.pauses) {
    add("pause between calls {} and {}{}\n", pause.after_sequence, pause.header.sequence,
        (pause.header.flags & kGapSeam) != 0 ? " seam" : "");
  }
  if (trace_.ended) add("end dropped={}\n", trace_.dropped);
  if (!trace_.ended) add("# the recording did not end: the program was killed, or still runs\n");
  if (trace_.unknown > 0) add("# {} records of unknown kinds\n", trace_.unknown);
  if (!trace_.tail.ok()) add("# {}\n", escaped(trace_.tail.message()));
}

std::string TextForm::write() {
  if (!trace_.events.empty()) {
    first_ns_ = std::visit([](const auto& one) { return one.record.time_ns; }, trace_.events.front());
  }
  head();
  for (const Event& one : trace_.events) {
    std::visit([this](const auto& event) { this->event(event); }, one);
  }
  tail();
  return std::move(text_);
}

}  // namespace

std::string to_text(const Trace& trace) { return TextForm(trace).write(); }

}  // namespace reprise::trace
