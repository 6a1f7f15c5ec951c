// code_check truth SOURCE CUBIN TEXT [-v]: what the code of kernels says, held against the truth in their source. Exit
// 1: a wrong claim. code_check survey CUBIN TEXT: a line a kernel, for tables: name, grade, pure, reads, writes, what
// stands against purity, instructions, milliseconds, why it is unknown; with tabs between. TEXT is what `nvdisasm -c`
// writes of CUBIN.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "analyzer/code/listing/listing.h"
#include "tests/code/truth.h"

namespace reprise::code {
namespace {

std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

int check_truth(const char* source, const char* cubin, const char* text, bool verbose) {
  const Score score = check(read_truth(content_of(source)), content_of(cubin), content_of(text));
  for (const std::string& line : score.wrong) fmt::print("WRONG {}\n", line);
  if (verbose) {
    for (const std::string& line : score.notes) fmt::print("  {}\n", line);
  }
  fmt::print("{}\n", score.text());
  return score.wrong.empty() && score.kernels > 0 ? 0 : 1;
}

std::string bases_of(const CodeFacts& facts, bool written) {
  std::vector<std::string> words;
  for (const auto& [base, uses] : facts.uses) {
    if (is_loaded(base.kind) || !(written ? uses.written : uses.read)) continue;
    const char* kind = base.kind == BaseKind::parameter ? "P" : base.kind == BaseKind::computed ? "R" : "other ";
    words.push_back(base.kind == BaseKind::parameter ? fmt::format("P{:#x}", base.key) : std::string(kind));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

int survey(const char* cubin, const char* text) {
  const auto image = images::parse_code(content_of(cubin));
  const auto begin = std::chrono::steady_clock::now();
  const auto listing = Listing::read(content_of(text));
  const std::chrono::duration<double, std::milli> reading = std::chrono::steady_clock::now() - begin;
  if (!image.ok() || !listing.ok()) {
    fmt::print(stderr, "{}{}\n", image.status().message(), listing.status().message());
    return 1;
  }
  fmt::print("# reading {:.1f} ms, {} instructions\n", reading.count(), listing.value().code().size());
  for (const images::KernelCode& kernel : image.value().kernels) {
    if (!listing.value().function(kernel.name)) continue;
    const auto start = std::chrono::steady_clock::now();
    const CodeFacts facts = analyse(listing.value(), image.value(), kernel);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::string impurities;
    for (const auto& [impurity, instruction] : facts.impurities) impurities += std::string(name_of(impurity)) + ";";
    const uint32_t count =
        listing.value().section(listing.value().code()[*listing.value().function(kernel.name)].section).count;
    fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.2f}\t{}\n", kernel.name,
               facts.known() ? name_of(facts.grade) : "unknown", facts.repeats() ? 1 : 0, bases_of(facts, false),
               bases_of(facts, true), impurities, count, took.count(), facts.unknown.value_or(facts.worst));
  }
  return 0;
}

}  // namespace
}  // namespace reprise::code

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "truth" && argc >= 5) return reprise::code::check_truth(argv[2], argv[3], argv[4], argc > 5);
  if (mode == "survey" && argc == 4) return reprise::code::survey(argv[2], argv[3]);
  fmt::print(stderr, "usage: code_check truth SOURCE CUBIN TEXT [-v] | survey CUBIN TEXT\n");
  return 2;
}
