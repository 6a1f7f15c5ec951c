// What others write: device code, task graphs, machine files, run logs.
#include <string>

#include "analyzer/code/facts.h"
#include "analyzer/code/listing/listing.h"
#include "analyzer/planner/planner.h"
#include "preload/images/image.h"
#include "tests/fuzz/readers.h"
#include "tools/lab/graphs/json_graph.h"
#include "tools/lab/machines/machines.h"
#include "tools/report/log/run_log.h"

namespace reprise::fuzz {

bool read_image(std::string_view bytes) {
  bool accepted = false;
  for (const uint32_t architecture : {images::kAnyArchitecture, uint32_t{90}}) {
    const Result<images::Image> image = images::parse_image(std::string(bytes), architecture);
    FUZZ_CHECK(image.ok() || one_line(image.status().message()));
    if (!image.ok()) continue;
    accepted = true;
    images::holds_variables(image.value());
    for (const images::KernelImage& kernel : image.value().kernels) FUZZ_CHECK(kernel.max_threads <= 1024);
    // What is held is a small multiple of the file; that of a fatbin may be compressed.
    uint64_t held = 0;
    for (const images::GlobalImage& global : image.value().globals) held += global.name.size() + global.initial.size();
    const bool packed = bytes.starts_with("\x50\xed\x55\xba");
    FUZZ_CHECK(held <= (packed ? uint64_t{1} << 28 : 8 * bytes.size()));
  }
  return accepted;
}

bool read_disassembly(std::string_view bytes) {
  const Result<code::Listing> listing = code::Listing::read(std::string(bytes));
  if (!listing.ok()) {
    FUZZ_CHECK(one_line(listing.status().message()));
    return false;
  }
  images::KernelCode kernel{.name = "kernel", .parameters_at = 0x210, .parameters = {}, .parameters_known = true};
  for (uint32_t offset = 0; offset < 64; offset += 8) kernel.parameters.push_back({offset, 8});
  images::CodeImage image;
  image.addresses = {{0, "variable"}, {8, "malloc"}, {16, "function"}};
  const code::CodeFacts facts = code::analyse(listing.value(), image, kernel);
  FUZZ_CHECK(facts.known() || one_line(*facts.unknown));
  return facts.known();
}

bool read_graph(std::string_view bytes) {
  Result<analyzer::TaskGraph> graph = tools::parse_graph(bytes, tools::kGraphChunk);
  if (!graph.ok()) {
    FUZZ_CHECK(one_line(graph.status().message()));
    return false;
  }
  const Result<analyzer::Workload> workload = analyzer::make_workload(std::move(graph.value()), {});
  FUZZ_CHECK(workload.ok() || one_line(workload.status().message()));
  return true;
}

bool read_machine(std::string_view bytes) {
  const Result<probe::Machine> machine = probe::parse_machine(std::string(bytes), "fuzz");
  if (!machine.ok()) {
    FUZZ_CHECK(one_line(machine.status().message()));
    return false;
  }
  tools::to_planner(machine.value());
  FUZZ_CHECK(probe::parse_machine(probe::to_json(machine.value()).dump(), "again").ok());
  return true;
}

bool read_run_log(std::string_view bytes) {
  report::RunLog log = report::parse_run_log(std::string(bytes));
  const bool accepted = log.unreadable_lines == 0 && !log.program.empty();
  report::median_iteration_ns(log, true);
  report::keep_iterations(log, 5);
  return accepted;
}

}  // namespace reprise::fuzz
