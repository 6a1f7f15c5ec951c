// code_check truth SOURCE CUBIN TEXT [-v]: what the code of kernels says, held against the truth in their source. Exit
// 1: a wrong claim. code_check survey CUBIN TEXT: a line a kernel, for tables: name, grade, pure, reads, writes, what
// stands against purity, instructions, milliseconds, why it is unknown; with tabs between. TEXT is what `nvdisasm -c`
// writes of CUBIN.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "analyzer/code/listing/listing.h"
#include "analyzer/code/machine.h"
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

std::string derived_in(const CodeFacts& facts) {
  for (const auto& [site, instruction] : facts.sites) {
    if (site.derived) return " derived: " + instruction;
  }
  return "";
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
               bases_of(facts, true), impurities, count, took.count(),
               facts.unknown.value_or(facts.worst + derived_in(facts)));
  }
  return 0;
}

bool is_control(Effect effect) {
  return effect == Effect::beyond || effect == Effect::unknown ||
         (effect >= Effect::jump && effect <= Effect::give_back);
}

std::string register_name(Register reg) {
  return reg >= kBarrier   ? fmt::format("B{}", reg - kBarrier)
         : is_uniform(reg) ? fmt::format("UR{}", reg - kUniform)
                           : fmt::format("R{}", reg);
}

std::string predicate_name(Predicate predicate) {
  return predicate < kUniformPredicate ? fmt::format("P{}", predicate)
                                       : fmt::format("UP{}", predicate - kUniformPredicate);
}

constexpr uint32_t kOwn = 1U << 20;  // no word of the driver's

// Each register holds a symbol of its own before; it is set where another value stands there afterwards.
std::string defined_by(KernelMachine& machine, const Instruction& original, uint32_t number) {
  Instruction instruction = original;
  instruction.guard = {};
  RegisterState state(machine.values);
  const auto own = [&](Register reg) { return machine.values.symbol({BaseKind::driver, kOwn + reg}, false); };
  for (Register reg = 0; reg < kRegisters; ++reg) state.write(reg, own(reg));
  execute({machine, state, instruction, number});
  std::string text;
  for (Register reg = 0; reg < kRegisters; ++reg) {
    const ValueId now = state.read(reg);
    if (now == own(reg)) continue;
    bool kept = false;
    machine.values[now].sole.each(
        [&](SymbolNumber symbol) { kept = kept || machine.values.symbols.of(symbol).base.key == kOwn + reg; });
    text += fmt::format(" {}{}", register_name(reg), kept ? "?" : "");
  }
  const PredicateSet predicates = set_predicates(instruction);
  for (Predicate predicate = 0; predicate < 16; ++predicate) {
    if (predicates.has(predicate)) text += fmt::format(" {}", predicate_name(predicate));
  }
  return text;
}

std::string form_of(std::string_view text) {
  std::string form;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !form.ends_with('#')) form += digit ? '#' : c;
  }
  return form;
}

int defines(const char* cubin, const char* text) {
  const auto image = images::parse_code(content_of(cubin));
  const auto listing = Listing::read(content_of(text));
  if (!image.ok() || !listing.ok() || image.value().kernels.empty()) return 1;
  std::map<std::string, int> seen;
  for (uint32_t number = 0; number < listing.value().code().size(); ++number) {
    const Instruction& instruction = listing.value().code()[number];
    if (is_control(instruction.row.effect) || ++seen[form_of(instruction.text)] > 3) continue;
    const std::string_view section = listing.value().section(instruction.section).name;
    KernelMachine machine(listing.value(), image.value(), image.value().kernels[0]);
    fmt::print("{} {:#x}{}\n", section, instruction.offset, defined_by(machine, instruction, number));
  }
  return 0;
}

}  // namespace
}  // namespace reprise::code

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "truth" && argc >= 5) return reprise::code::check_truth(argv[2], argv[3], argv[4], argc > 5);
  if (mode == "survey" && argc == 4) return reprise::code::survey(argv[2], argv[3]);
  if (mode == "defines" && argc == 4) return reprise::code::defines(argv[2], argv[3]);
  fmt::print(stderr, "usage: code_check truth SOURCE CUBIN TEXT [-v] | survey CUBIN TEXT | defines CUBIN TEXT\n");
  return 2;
}
