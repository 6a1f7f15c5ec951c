#include "tests/code/truth.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "analyzer/code/listing/listing.h"

namespace reprise::code {
namespace {

std::set<uint32_t> numbers_in(const std::string& text) {
  std::set<uint32_t> numbers;
  std::istringstream stream(text);
  std::string one;
  while (std::getline(stream, one, ',')) numbers.insert(static_cast<uint32_t>(std::stoul(one)));
  return numbers;
}

// "160:000102": bytes at an offset; the others are 0.
std::vector<uint8_t> bytes_in(const std::string& text) {
  const size_t colon = text.find(':');
  std::vector<uint8_t> bytes(std::stoul(text.substr(0, colon)));
  for (size_t at = colon + 1; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(at, 2), nullptr, 16)));
  }
  bytes.resize(bytes.size() + 4096);
  return bytes;
}

void set_field(Truth& truth, const std::string& name, const std::string& value) {
  if (name == "live") truth.launch.live = numbers_in(value);
  if (name == "read") truth.operands.read = numbers_in(value);
  if (name == "write") truth.operands.written = numbers_in(value);
  if (name == "null") truth.launch.null = numbers_in(value);
  if (name == "hidden") truth.hidden = value == "1";
  if (name == "pure") truth.pure = value == "1";
  if (name == "at") truth.launch.parameters = bytes_in(value);
  if (name == "grid") truth.launch.grid[0] = static_cast<uint32_t>(std::stoul(value));
}

bool lacks(const std::set<uint32_t>& claimed, const std::set<uint32_t>& truth) {
  return !std::includes(claimed.begin(), claimed.end(), truth.begin(), truth.end());
}

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t x) { return b.contains(x); });
}

std::string impurities_of(const CodeFacts& facts) {
  std::string text;
  for (const auto& [impurity, instruction] : facts.impurities) text += std::string(name_of(impurity)) + "; ";
  return text;
}

}  // namespace

std::map<std::string, Truth> read_truth(const std::string& source) {
  std::map<std::string, Truth> truths;
  std::istringstream lines(source);
  std::string line;
  while (std::getline(lines, line)) {
    constexpr std::string_view kBegin = "// TRUTH ";
    if (!line.starts_with(kBegin)) continue;
    std::istringstream words(line.substr(kBegin.size()));
    std::string word;
    words >> word;
    Truth& truth = truths[word];
    while (words >> word) set_field(truth, word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
  return truths;
}

std::string Score::text() const {
  return fmt::format(
      "{} kernels: exact {}, wider {}, hidden told {}, hidden for none {}, unknown {}; pure found {}, missed {}; {} "
      "wrong claims",
      kernels, exact, wider, hidden_told, hidden_for_none, unknown, pure_found, pure_missed, wrong.size());
}

void compare(const std::string& name, const Truth& truth, const CodeFacts& facts, Score& score) {
  ++score.kernels;
  if (!facts.known()) {
    ++score.unknown;
    score.notes.push_back(name + ": unknown: " + *facts.unknown);
    return;
  }
  const auto found = operands_of(facts, truth.launch);
  if (!found) {
    ++(truth.hidden ? score.hidden_told : score.hidden_for_none);
    if (!truth.hidden)
      score.notes.push_back(fmt::format("{}: {} for none: {}", name, name_of(facts.grade), facts.worst));
  } else {
    if (truth.hidden) score.wrong.push_back(fmt::format("{}: hidden pointers missed, {}", name, name_of(facts.grade)));
    if (lacks(found->read, truth.operands.read)) score.wrong.push_back(fmt::format("{}: reads {}", name, found->read));
    if (lacks(found->written, truth.operands.written))
      score.wrong.push_back(fmt::format("{}: writes {}", name, found->written));
    const bool exact = found->read == truth.operands.read && found->written == truth.operands.written;
    ++(exact ? score.exact : score.wider);
    if (!exact) score.notes.push_back(fmt::format("{}: wider: reads {}, writes {}", name, found->read, found->written));
  }
  const bool pure = facts.repeats() && found && !meet(found->read, found->written);
  if (pure && !truth.pure) score.wrong.push_back(name + ": pure claimed; " + impurities_of(facts));
  if (truth.pure) ++(pure ? score.pure_found : score.pure_missed);
  if (truth.pure && !pure) score.notes.push_back(name + ": not pure: " + impurities_of(facts));
}

Score check(const std::map<std::string, Truth>& truths, const std::string& cubin, std::string disassembly) {
  Score score;
  const auto image = images::parse_code(cubin);
  const auto listing = Listing::read(std::move(disassembly));
  if (!image.ok()) score.wrong.push_back(image.status().message());
  if (!listing.ok()) score.wrong.push_back(listing.status().message());
  if (!image.ok() || !listing.ok()) return score;
  for (const images::KernelCode& kernel : image.value().kernels) {
    const auto truth = truths.find(kernel.name);
    if (truth != truths.end())
      compare(kernel.name, truth->second, analyse(listing.value(), image.value(), kernel), score);
  }
  return score;
}

}  // namespace reprise::code
