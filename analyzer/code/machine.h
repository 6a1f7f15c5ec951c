// One kernel under analysis: what its instructions are run on, and what was found. A doubt ends the analysis: nothing
// is then known of the kernel. Callers: the interpreter and the walk.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/code/cells.h"
#include "analyzer/code/domain/value.h"
#include "analyzer/code/facts.h"
#include "analyzer/code/listing/listing.h"
#include "analyzer/code/state.h"
#include "preload/images/code.h"

namespace reprise::code {

// An access to global memory, as the last round of the walk sees it.
struct GlobalAccess {
  uint32_t instruction = 0;
  How how = How::read;
  bool descriptor = false;  // of the memory that a tensor map describes
  ValueId low = ValueTable::kNothing;
  ValueId high = ValueTable::kNothing;
  std::vector<ValueId> data;  // that is stored
};

class KernelMachine {
 public:
  KernelMachine(const Listing& code, const images::CodeImage& cubin, const images::KernelCode& function)
      : listing(code), image(cubin), kernel(function), cells(values) {}
  KernelMachine(const KernelMachine&) = delete;
  KernelMachine& operator=(const KernelMachine&) = delete;

  // The first doubt is kept.
  void doubt(std::string what, uint32_t instruction) {
    if (!doubt_) doubt_ = Doubt{std::move(what), instruction};
  }
  const std::optional<Doubt>& doubted() const { return doubt_; }
  void flag(Impurity what, uint32_t instruction) {
    if (final) impurities.emplace(what, instruction);  // the first one is kept
  }
  ValueId opaque(std::initializer_list<ValueId> of) { return values.opaque(std::span(of.begin(), of.size())); }

  const Listing& listing;
  const images::CodeImage& image;
  const images::KernelCode& kernel;
  ValueTable values;
  Cells cells;
  bool final = false;        // the last round, in which nothing changes any more
  bool looked_into = false;  // the present block has read cells
  std::vector<GlobalAccess> accesses;
  std::map<Impurity, uint32_t> impurities;

 private:
  std::optional<Doubt> doubt_;
};

// What an instruction is run with.
struct Step {
  KernelMachine& machine;
  RegisterState& state;
  const Instruction& instruction;
  uint32_t number;

  void doubt(std::string what) const { machine.doubt(std::move(what), number); }
  ValueId read(Register reg) const { return state.read(reg, instruction.guard); }
  void write(Register reg, ValueId value) const { state.write(reg, value, instruction.guard); }
};

// Operands. `half`: 0, or 1 for the upper half of 64 bits.
ValueId value_of(const Step& step, const CodeOperand& operand, uint32_t half = 0);
ValueId constant_word(const Step& step, const CodeOperand& operand, uint32_t half);
// The words that a store takes from here.
std::vector<ValueId> moved(const Step& step, const CodeOperand& operand, uint32_t count);
// Results go to the first operand that is a register, and those behind it. `whole`: not bytes only.
void place(const Step& step, std::span<const ValueId> values, bool whole = true);

// Runs an instruction that does not branch.
void execute(const Step& step);
void execute_arithmetic(const Step& step);
void execute_memory(const Step& step);
PredicateSet set_predicates(const Instruction& instruction);

}  // namespace reprise::code
