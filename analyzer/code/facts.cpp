#include "analyzer/code/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/code/classify.h"
#include "analyzer/code/machine.h"
#include "analyzer/code/walk.h"

namespace reprise::code {
namespace {

constexpr uint32_t kOldest = 75;
constexpr uint32_t kNewest = 90;
constexpr const char* kGrades[] = {"closed", "indexed", "mixed", "hidden"};

struct ImpurityRow {
  Impurity impurity;
  const char* name;
  bool harmless;
};
constexpr ImpurityRow kImpurities[] = {
    {Impurity::atomic, "atomics", false},
    {Impurity::shared_atomic_number, "atomics in shared memory whose order does not show", true},
    {Impurity::shared_atomic, "atomics in shared memory", false},
    {Impurity::strong_read, "volatile loads", false},
    {Impurity::strong_write, "volatile stores", false},
    {Impurity::clock, "a clock", false},
    {Impurity::processor, "the number of the processor", false},
    {Impurity::special_register, "a special register", false},
    {Impurity::active_mask, "which threads are active", false},
    {Impurity::scatter, "writes at loaded indices", false},
    {Impurity::reads_what_it_writes, "reads what it writes", false},
    {Impurity::module_variable, "a variable of its module", true},
    {Impurity::driver_memory, "the driver's memory", false},
    {Impurity::heap, "memory of malloc", false},
    {Impurity::descriptor, "tensor maps", true},
    {Impurity::dependent_launch, "programmatic dependent launch", true},
    {Impurity::null_unused, "a null pointer that is not followed", true},
    {Impurity::prints, "printf", false},
    {Impurity::asserts, "assert", true},
    {Impurity::allocates, "malloc", false},
};

const ImpurityRow& row_of(Impurity impurity) { return kImpurities[static_cast<size_t>(impurity)]; }

std::string text_of(const Listing& listing, uint32_t number) {
  if (number >= listing.code().size()) return "";
  const Instruction& instruction = listing.code()[number];
  const bool end = instruction.row.effect == Effect::beyond;
  return fmt::format("{:04x} {}", instruction.offset, end ? "end" : instruction.text.substr(0, 80));
}

class Collector {
 public:
  Collector(KernelMachine& machine, CodeFacts& facts) : machine_(machine), facts_(facts) {}

  void collect() {
    for (const GlobalAccess& access : machine_.accesses) add(access);
    for (const auto& [impurity, instruction] : machine_.impurities) flag(impurity, instruction);
    for (const auto& [base, uses] : facts_.uses) {
      if (base.kind == BaseKind::module) flag(Impurity::module_variable, last_);
      if (base.kind == BaseKind::driver) flag(Impurity::driver_memory, last_);
      if (base.kind == BaseKind::heap) flag(Impurity::heap, last_);
      if (uses.read && uses.written) flag(Impurity::reads_what_it_writes, last_);
    }
  }

 private:
  void flag(Impurity impurity, uint32_t instruction) {
    facts_.impurities.emplace(impurity, text_of(machine_.listing, instruction));
  }

  void add(const GlobalAccess& access) {
    AddressClass found = classify(machine_.values, access.low, access.high);
    last_ = access.instruction;
    if (found.grade > facts_.grade) {
      facts_.grade = found.grade;
      facts_.worst = text_of(machine_.listing, access.instruction);
    }
    if (access.how == How::write && found.grade != Grade::closed) flag(Impurity::scatter, access.instruction);
    const bool null =
        machine_.values[access.low].sole.has(kNullSymbol) || machine_.values[access.high].sole.has(kNullSymbol);
    if (null && found.grade != Grade::closed) flag(Impurity::null_unused, access.instruction);
    for (const std::set<Base>& choice : found.choices) {
      for (const Base& base : choice) use(base, access.how);
    }
    for (const Base& base : found.numbers) facts_.uses[base].index = true;
    for (const ValueId value : access.data) store(value);
    facts_.sites.try_emplace(
        {access.how, found.grade, access.descriptor, found.derived, std::move(found.choices), std::move(found.numbers)},
        text_of(machine_.listing, access.instruction));
  }

  void use(const Base& base, How how) {
    WordUses& uses = facts_.uses[base];
    uses.read = uses.read || how != How::write;
    uses.written = uses.written || how != How::read;
    uses.atomic = uses.atomic || how == How::atomic;
  }

  void store(ValueId value) {
    machine_.values.symbols_of(value).each([&](SymbolNumber number) {
      const Base base = machine_.values.symbols.of(number).base;
      if (!is_loaded(base.kind) && !is_outside(base.kind)) facts_.uses[base].stored = true;
    });
  }

  KernelMachine& machine_;
  CodeFacts& facts_;
  uint32_t last_ = 0;
};

}  // namespace

const char* name_of(Grade grade) { return kGrades[static_cast<size_t>(grade)]; }
const char* name_of(Impurity impurity) { return row_of(impurity).name; }
bool is_harmless(Impurity impurity) { return row_of(impurity).harmless; }

bool CodeFacts::repeats() const {
  if (!known() || grade == Grade::hidden) return false;
  const bool impure =
      std::any_of(impurities.begin(), impurities.end(), [](const auto& one) { return !is_harmless(one.first); });
  const bool leaves = std::any_of(uses.begin(), uses.end(), [](const auto& one) {
    return one.first.kind == BaseKind::module && one.second.written;
  });
  return !impure && !leaves;
}

CodeFacts analyse(const Listing& listing, const images::CodeImage& image, const images::KernelCode& kernel) {
  CodeFacts facts;
  facts.kernel = kernel.name;
  facts.parameters = kernel.parameters;
  KernelMachine machine(listing, image, kernel);
  if (listing.architecture() < kOldest || listing.architecture() > kNewest) {
    machine.doubt(fmt::format("code of sm_{}; only sm_{} to sm_{} are known", listing.architecture(), kOldest, kNewest),
                  0);
  }
  if (kernel.parameters_at == 0 || !kernel.parameters_known) machine.doubt("its parameters are not described", 0);
  if (!machine.doubted()) walk(machine);
  if (machine.doubted()) {
    const Doubt& doubt = *machine.doubted();
    facts.unknown = doubt.what + (doubt.instruction == 0 ? "" : ": " + text_of(listing, doubt.instruction));
    return facts;
  }
  Collector(machine, facts).collect();
  facts.symbols = std::move(machine.values.symbols);
  facts.expressions = std::move(machine.values.expressions);
  return facts;
}

}  // namespace reprise::code
