// Files of our own making that others may hand us: traces, plans, kernel facts.
#include <fmt/format.h>

#include <string>

#include "analyzer/plan/codec.h"
#include "analyzer/planner/planner.h"
#include "analyzer/verify/verify.h"
#include "preload/facts/facts.h"
#include "preload/trace/reader.h"
#include "replay/plan/plan_index.h"
#include "tests/fuzz/readers.h"
#include "tests/support/trace_bytes.h"
#include "tools/report/view/timeline.h"

namespace reprise::fuzz {
namespace {

// The verifier's and the analyzer's work grows faster than their input, by design; large inputs are left to tests.
constexpr size_t kMostVertices = 200;
constexpr size_t kMostEvents = 400;

bool read_a_trace(std::string_view bytes) {
  Result<trace::Trace> result = trace::parse_trace(bytes, "fuzz");
  if (!result.ok()) {
    FUZZ_CHECK(one_line(result.status().message()));
    return false;
  }
  const trace::Trace& trace = result.value();
  FUZZ_CHECK(!trace::to_text(trace).empty());
  report::recorded_timeline(trace);
  if (trace.events.size() > kMostEvents) return trace.tail.ok();
  const Result<analyzer::Workload> workload = analyzer::Planning(trace, analyzer::PlanOptions()).workload();
  FUZZ_CHECK(workload.ok() || one_line(workload.status().message()));
  return trace.tail.ok();
}

void use_plan(const plan::Plan& plan) {
  FUZZ_CHECK(!plan::to_text(plan).empty());
  plan::reorders(plan);
  report::predicted_timeline(plan);
  if (plan.vertices.size() > kMostVertices) return;
  const Status verdict = analyzer::verify(plan);
  FUZZ_CHECK(verdict.ok() || one_line(verdict.message()));
  for (const plan::Safety safety : {plan::Safety::trusted, plan::Safety::strict}) {
    replay::PlanIndex index;
    std::string why;
    constexpr replay::Zone kZone{uint64_t{1} << 40, uint64_t{1} << 40};
    const bool fits = replay::make_plan_index(plan, kZone, plan.chunk_bytes, &index, &why, safety);
    FUZZ_CHECK(fits || one_line(why));
  }
}

}  // namespace

bool read_trace(std::string_view bytes) { return read_a_trace(bytes); }

bool read_records(std::string_view bytes) {
  trace::test::TraceBytes file;
  return read_a_trace(file.chunk_of(std::string(bytes)).bytes());
}

bool read_plan(std::string_view bytes) {
  std::string file(bytes);
  if (file.size() >= sizeof(plan::PlanHeader)) {
    plan::PlanHeader header{};
    std::memcpy(&header, file.data(), sizeof header);
    header.payload_bytes = file.size() - sizeof header;
    header.checksum = trace::hash_bytes(file.data() + sizeof header, file.size() - sizeof header);
    std::memcpy(file.data(), &header, sizeof header);
  }
  const Result<plan::Plan> plan = plan::deserialize(file);
  if (!plan.ok()) {
    FUZZ_CHECK(one_line(plan.status().message()));
    return false;
  }
  FUZZ_CHECK(plan::serialize(plan.value()) == file);
  use_plan(plan.value());
  return true;
}

bool read_facts(std::string_view bytes) {
  const std::string text(bytes);
  const std::string sealed = fmt::format("{}checksum {:016x}\n", text, trace::hash_bytes(text.data(), text.size()));
  (void)facts::from_text(text);
  Result<facts::KernelFacts> facts = facts::from_text(sealed);
  if (!facts.ok()) {
    FUZZ_CHECK(one_line(facts.status().message()));
    return false;
  }
  facts::merge(facts.value(), facts::KernelFacts(facts.value()));
  for (const facts::SlotEvidence& slot : facts.value().slots) {
    facts::reads(facts.value(), slot.parameter_offset);
    facts::writes(facts.value(), slot.parameter_offset);
  }
  facts::pure(facts.value());
  return true;
}

}  // namespace reprise::fuzz
