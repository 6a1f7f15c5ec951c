// A trace in memory as the bytes of a file. Used by tests that hand traces to the command line.
#pragma once
#include <string>

#include "preload/trace/reader.h"
#include "tests/support/trace_bytes.h"

namespace reprise::tools::test {

inline void add_event(trace::test::TraceBytes& bytes, const trace::Event& event) {
  using trace::RecordKind;
  const uint64_t sequence = trace::sequence_of(event);
  if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
    bytes.add(RecordKind::allocate, sequence, allocate->record);
  } else if (const auto* release = std::get_if<trace::Free>(&event)) {
    bytes.add(RecordKind::free, sequence, release->record);
  } else if (const auto* order = std::get_if<trace::Order>(&event)) {
    bytes.add(RecordKind::order, sequence, order->record);
  } else if (const auto* op = std::get_if<trace::Op>(&event)) {
    std::string tail;
    for (const trace::AccessRecord& access : op->accesses) tail += trace::test::bytes_of(access);
    trace::OpRecord record = op->record;
    record.access_count = static_cast<uint32_t>(op->accesses.size());
    record.parameter_bytes = 0;
    bytes.add(RecordKind::op, sequence, record, tail);
  }
}

// `ended`: with an end record, as of a program that came to its end.
inline std::string trace_bytes(const trace::Trace& trace, bool ended = true) {
  trace::test::TraceBytes bytes;
  for (const auto& [key, value] : trace.info) bytes.info(std::string(key).append("=").append(value));
  for (const trace::TracedFunction& function : trace.functions) {
    trace::FunctionRecord record{};
    record.function = function.id;
    record.name_bytes = static_cast<uint32_t>(function.name.size());
    bytes.add(trace::RecordKind::function, 0, record, function.name);
  }
  for (const trace::Event& event : trace.events) add_event(bytes, event);
  for (const auto& [sequence, activity] : trace.activities) {
    bytes.add(trace::RecordKind::activity, sequence, activity);
  }
  if (ended) bytes.add(trace::RecordKind::end, 0, trace::EndRecord{});
  return bytes.end_chunk().bytes();
}

}  // namespace reprise::tools::test
