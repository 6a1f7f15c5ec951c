// What nvdisasm -c writes of a cubin, read: instructions of all functions in one sequence, labels, and where functions
// begin. The text is not trusted: what is too large or not regular is an error, what is only unknown stays to be asked
// about. Callers: the analysis of kernels.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/code/listing/opcodes.h"
#include "analyzer/code/listing/operand.h"
#include "preload/trace/status.h"

namespace reprise::code {

inline constexpr uint32_t kInstructionBytes = 16;  // sm_70 and later

struct Guard {
  Predicate predicate = kTrue;
  bool negated = false;

  bool always() const { return predicate == kTrue && !negated; }
  bool operator==(const Guard&) const = default;
};

struct Instruction {
  Guard guard;
  OpcodeRow row;
  Modifiers modifiers;
  Modifier first_type = Modifier::unknown;  // F64 of F2F.F64.F32
  uint16_t columns = 0;                     // 256 of HGMMA.64x256x16
  uint32_t section = 0;
  uint32_t offset = 0;  // in its section
  std::vector<CodeOperand> operands;
  std::vector<std::string_view> targets;  // labels and functions that it names
  std::string_view text;                  // from the opcode on

  bool has(Modifier modifier) const { return modifiers.has(modifier); }
};

struct CodeSection {
  std::string_view name;  // of the function that it holds first
  uint32_t first = 0;     // of its instructions
  uint32_t count = 0;
};

class Listing {
 public:
  static Result<Listing> read(std::string text);

  // The last instruction of each section is its end, which has Effect::beyond.
  const std::vector<Instruction>& code() const { return code_; }
  std::optional<uint32_t> label(std::string_view name) const;
  // The function that has a section of its own.
  std::optional<uint32_t> function(std::string_view name) const;
  // An instruction by its place in a section.
  std::optional<uint32_t> at(uint32_t section, uint32_t offset) const;
  bool begins_block(uint32_t instruction) const { return leaders_[instruction]; }
  const CodeSection& section(uint32_t number) const { return sections_[number]; }
  uint32_t architecture() const { return architecture_; }  // 90 for sm_90 and sm_90a; 0: not said

 private:
  friend class ListingReader;
  std::unique_ptr<const std::string> text_;  // which all names are views of
  std::vector<Instruction> code_;
  std::vector<CodeSection> sections_;
  std::unordered_map<std::string_view, uint32_t> labels_;
  std::unordered_map<std::string_view, uint32_t> functions_;
  std::vector<bool> leaders_;
  uint32_t architecture_ = 0;
};

}  // namespace reprise::code
