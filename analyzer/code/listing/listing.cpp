#include "analyzer/code/listing/listing.h"

#include <algorithm>
#include <charconv>

namespace reprise::code {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr size_t kMostInstructions = size_t{4} << 20;
constexpr size_t kMostOperands = 24;
constexpr size_t kMostTargets = 4096;  // of a switch
constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_name(std::string_view text) {
  for (const char c : text) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
    if (!good) return false;
  }
  return !text.empty();
}

// The offset of "/*01a0*/", which `line` begins with and loses.
std::optional<uint32_t> take_offset(std::string_view& line) {
  if (!line.starts_with("/*")) return std::nullopt;
  const size_t end = line.find("*/");
  if (end == std::string_view::npos || end < 6) return std::nullopt;
  uint32_t offset = 0;
  const char* last = line.data() + end;
  const auto [stop, error] = std::from_chars(line.data() + 2, last, offset, 16);
  if (error != std::errc() || stop != last) return std::nullopt;
  line = trimmed(line.substr(end + 2));
  return offset;
}

// "@!P0 " or "@UP1 ".
bool take_guard(std::string_view& line, Guard& guard) {
  if (!line.starts_with("@")) return true;
  const size_t end = line.find_first_of(kSpace);
  if (end == std::string_view::npos) return false;
  const CodeOperand operand = read_operand(line.substr(1, end - 1));
  if (!operand.is(OperandKind::predicate) || operand.predicate == kAllPredicates) return false;
  guard = {operand.predicate, operand.negated};
  line = trimmed(line.substr(end));
  return true;
}

bool is_type(Modifier modifier) {
  return (modifier >= Modifier::U8 && modifier <= Modifier::BF16x2) || modifier == Modifier::unknown;
}

// 64x256x16: 256.
uint16_t columns_of(std::string_view part) {
  const size_t begin = part.find('x');
  const size_t end = part.rfind('x');
  if (begin == std::string_view::npos || begin == end) return 0;
  uint16_t columns = 0;
  const auto [stop, error] = std::from_chars(part.data() + begin + 1, part.data() + end, columns);
  return error == std::errc() && stop == part.data() + end ? columns : uint16_t{0};
}

void read_opcode(std::string_view word, Instruction& instruction) {
  const size_t dot = word.find('.');
  instruction.row = opcode_of(word.substr(0, dot));
  bool typed = false;
  while (dot != std::string_view::npos && !word.empty()) {
    const size_t begin = word.find('.');
    if (begin == std::string_view::npos) break;
    word.remove_prefix(begin + 1);
    const std::string_view part = word.substr(0, word.find('.'));
    const Modifier modifier = modifier_of(part);
    instruction.modifiers.add(modifier);
    if (!typed && modifier != Modifier::unknown && is_type(modifier)) {
      instruction.first_type = modifier;
      typed = true;
    }
    if (const uint16_t columns = columns_of(part); columns != 0) instruction.columns = columns;
  }
}

// Splits at commas outside of brackets.
template <typename Use>
void split(std::string_view text, const Use& use) {
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == '{' || c == '(') ++depth;
    if (c == ']' || c == '}' || c == ')') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) use(part);
    begin = i + 1;
  }
}

// Behind the register of a computed jump or call stands what is added to it, or whose code that is.
std::string_view without_displacement(std::string_view part) {
  const size_t space = part.find(' ');
  if (space == std::string_view::npos) return part;
  const std::string_view rest = trimmed(part.substr(space));
  const CodeOperand first = read_operand(part.substr(0, space));
  return first.is(OperandKind::registers) && read_operand(rest).is(OperandKind::immediate) ? part.substr(0, space)
                                                                                           : part;
}

}  // namespace

class ListingReader {
 public:
  explicit ListingReader(Listing& listing) : listing_(listing) {}

  Status read(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (Status status = read_line(trimmed(line)); !status.ok()) return status;
    }
    end_section();
    find_leaders();
    return {};
  }

 private:
  Status corrupt(std::string_view line, const char* what) const {
    return {StatusCode::corrupt, "disassembly: " + std::string(what) + ": " + std::string(line.substr(0, 80))};
  }

  Status read_line(std::string_view line) {
    constexpr std::string_view kSection = ".section";
    constexpr std::string_view kText = ".text.";
    if (line.starts_with(kSection) &&
        kSpace.find(line[std::min(kSection.size(), line.size() - 1)]) != std::string_view::npos) {
      const std::string_view rest = trimmed(line.substr(kSection.size()));
      end_section();
      if (rest.starts_with(kText)) begin_section(rest.substr(kText.size(), rest.find_first_of(", \t") - kText.size()));
      return {};
    }
    constexpr std::string_view kTarget = ".target";
    if (line.starts_with(kTarget)) read_target(trimmed(line.substr(kTarget.size())));
    if (!open_) return {};
    if (line.ends_with(":") && is_name(line.substr(0, line.size() - 1))) {
      const bool added = listing_.labels_.emplace(line.substr(0, line.size() - 1), next()).second;
      return added ? Status() : corrupt(line, "two labels of one name");
    }
    const auto offset = take_offset(line);
    return offset ? read_instruction(*offset, line) : Status();
  }

  void read_target(std::string_view name) {
    if (!name.starts_with("sm_")) return;
    std::from_chars(name.data() + 3, name.data() + name.size(), listing_.architecture_);
  }

  Status read_instruction(uint32_t offset, std::string_view line) {
    if (offset != listing_.sections_.back().count * kInstructionBytes)
      return corrupt(line, "instructions are not 16 bytes apart");
    if (listing_.code_.size() >= kMostInstructions) return corrupt(line, "too many instructions");
    Instruction instruction;
    if (!take_guard(line, instruction.guard)) return corrupt(line, "a guard that is no predicate");
    if (line.ends_with(";")) line = trimmed(line.substr(0, line.size() - 1));
    const size_t space = line.find_first_of(kSpace);
    instruction.text = line;
    read_opcode(line.substr(0, space), instruction);
    if (space != std::string_view::npos && !read_operands(line.substr(space), instruction)) {
      return corrupt(line, "too many operands");
    }
    append(std::move(instruction));
    return {};
  }

  static bool read_operands(std::string_view rest, Instruction& instruction) {
    constexpr std::string_view kBranches = "(*\"BRANCH_TARGETS ";
    if (const size_t note = rest.find(kBranches); note != std::string_view::npos) {
      const std::string_view names = rest.substr(note + kBranches.size());
      split(names.substr(0, names.find('"')), [&](std::string_view name) { instruction.targets.push_back(name); });
      rest = rest.substr(0, note);
    }
    // nvdisasm 13.5 says so of what spills; other notes stay, and make an operand that is not known.
    if (const size_t note = rest.find("(*\"SpillRefill\"*)"); note != std::string_view::npos)
      rest = rest.substr(0, note);
    split(rest, [&](std::string_view part) { read_part(part, instruction); });
    return instruction.operands.size() <= kMostOperands && instruction.targets.size() <= kMostTargets;
  }

  static void read_part(std::string_view part, Instruction& instruction) {
    if (const size_t tick = part.find("`("); tick != std::string_view::npos) {
      const size_t end = part.find(')', tick);
      if (end == std::string_view::npos || end + 1 != part.size()) {
        instruction.operands.emplace_back();
        return;
      }
      instruction.targets.push_back(part.substr(tick + 2, end - tick - 2));
      part = trimmed(part.substr(0, tick));
      if (part.empty()) return;
    }
    instruction.operands.push_back(read_operand(without_displacement(part)));
  }

  uint32_t next() const { return static_cast<uint32_t>(listing_.code_.size()); }

  void append(Instruction instruction) {
    CodeSection& section = listing_.sections_.back();
    instruction.section = static_cast<uint32_t>(listing_.sections_.size() - 1);
    instruction.offset = section.count * kInstructionBytes;
    ++section.count;
    listing_.code_.push_back(std::move(instruction));
  }

  void begin_section(std::string_view name) {
    listing_.functions_.emplace(name, next());
    listing_.sections_.push_back({name, next(), 0});
    open_ = true;
  }

  void end_section() {
    if (!open_) return;
    Instruction end;
    end.row.effect = Effect::beyond;
    end.row.any = true;
    append(std::move(end));
    open_ = false;
  }

  void find_leaders() {
    listing_.leaders_.assign(listing_.code_.size(), false);
    for (const auto& [name, place] : listing_.labels_) listing_.leaders_[place] = true;
  }

  Listing& listing_;
  bool open_ = false;  // in a section of code
};

Result<Listing> Listing::read(std::string text) {
  if (text.size() > kMostBytes) return Status(StatusCode::unsupported, "disassembly: more than 1 GiB of text");
  Listing listing;
  listing.text_ = std::make_unique<const std::string>(std::move(text));
  if (Status status = ListingReader(listing).read(*listing.text_); !status.ok()) return status;
  return listing;
}

std::optional<uint32_t> Listing::label(std::string_view name) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> Listing::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> Listing::at(uint32_t section, uint32_t offset) const {
  if (section >= sections_.size() || offset % kInstructionBytes != 0) return std::nullopt;
  const CodeSection& found = sections_[section];
  if (offset / kInstructionBytes >= found.count) return std::nullopt;
  return found.first + offset / kInstructionBytes;
}

}  // namespace reprise::code
