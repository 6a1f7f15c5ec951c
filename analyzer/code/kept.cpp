// The text form:
//
//     reprise code facts 1
//     kernel _Z5scalePKfPff
//     grade 0
//     impurity 9
//     site 1 0 0 0 choice p8 end
//     use p8 2
//     checksum 0123456789abcdef
#include "analyzer/code/kept.h"

#include <fmt/format.h>

#include <cstring>
#include <sstream>
#include <utility>

#include "preload/facts/facts.h"
#include "preload/trace/signature.h"

namespace reprise::code {
namespace {

constexpr char kHead[] = "reprise code facts ";
constexpr char kChecksum[] = "checksum ";
constexpr char kKinds[] = "0pcl_mdt~wh*b";  // of BaseKind, in its order
constexpr size_t kMostLines = 1 << 16;

Status damaged(const char* what) { return {StatusCode::corrupt, what}; }
uint64_t checksum_of(const std::string& text) { return trace::hash_bytes(text.data(), text.size()); }

// Keys of names and bases mean nothing without their tables, and tell bases apart alone.
std::string word_of(const CodeFacts& facts, const Base& base) {
  const uint32_t key = base.kind == BaseKind::computed ? facts.symbols.place(base.key).displacement : base.key;
  return fmt::format(" {}{}", kKinds[static_cast<size_t>(base.kind)], key);
}

std::string words_of(const CodeFacts& facts, const std::set<Base>& bases) {
  std::string text;
  for (const Base& base : bases) text += word_of(facts, base);
  return text;
}

uint32_t bits_of(const WordUses& uses) {
  return (uses.read ? 1U : 0U) | (uses.written ? 2U : 0U) | (uses.atomic ? 4U : 0U) | (uses.index ? 8U : 0U) |
         (uses.stored ? 16U : 0U);
}

class Reader {
 public:
  bool line(const std::string& text) {
    std::istringstream words(text);
    std::string first;
    words >> first;
    if (first == "kernel") {
      words >> facts_.kernel;
    } else if (first == "unknown") {
      facts_.unknown.emplace();
      std::getline(words >> std::ws, *facts_.unknown);
      return true;
    } else if (first == "grade") {
      uint32_t grade = 0;
      words >> grade;
      if (grade > static_cast<uint32_t>(Grade::hidden)) return false;
      facts_.grade = static_cast<Grade>(grade);
    } else if (first == "impurity") {
      uint32_t impurity = 0;
      words >> impurity;
      if (impurity > static_cast<uint32_t>(Impurity::allocates)) return false;
      facts_.impurities.emplace(static_cast<Impurity>(impurity), "");
    } else if (first == "site") {
      return site(words);
    } else if (first == "use") {
      return use(words);
    } else {
      return false;
    }
    return !words.fail();
  }

  CodeFacts take() { return std::move(facts_); }

 private:
  bool base(const std::string& word, Base& base) {
    const char* const kind = word.empty() ? nullptr : std::strchr(kKinds, word[0]);
    if (kind == nullptr || *kind == '\0') return false;
    base.kind = static_cast<BaseKind>(kind - kKinds);
    std::istringstream number(word.substr(1));
    number >> base.key;
    if (number.fail() || !number.eof()) return false;
    if (base.kind == BaseKind::computed) base.key = facts_.symbols.place_number({base.key, 0});
    return true;
  }

  bool site(std::istringstream& words) {
    uint32_t how = 0;
    uint32_t grade = 0;
    Site site;
    words >> how >> grade >> site.descriptor >> site.derived;
    if (words.fail() || how > static_cast<uint32_t>(How::atomic) || grade > static_cast<uint32_t>(Grade::hidden)) {
      return false;
    }
    site.how = static_cast<How>(how);
    site.grade = static_cast<Grade>(grade);
    std::set<Base>* into = &site.numbers;
    std::set<Base> choice;
    bool open = false;
    for (std::string word; words >> word;) {
      if (word == "choice" || word == "end") {
        if (open) site.choices.insert(std::exchange(choice, {}));
        open = word == "choice";
        into = open ? &choice : &site.numbers;
        if (!open) {
          facts_.sites.emplace(std::move(site), "");
          return (words >> word).fail();
        }
        continue;
      }
      Base one;
      if (!base(word, one)) return false;
      into->insert(one);
    }
    return false;
  }

  bool use(std::istringstream& words) {
    std::string word;
    uint32_t bits = 0;
    words >> word >> bits;
    Base of;
    if (words.fail() || bits > 31 || !base(word, of)) return false;
    facts_.uses[of] = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
    return true;
  }

  CodeFacts facts_;
};

}  // namespace

std::string to_text(const CodeFacts& facts) {
  std::string text = fmt::format("{}{}\nkernel {}\n", kHead, facts::kCodeVersion, facts.kernel);
  if (!facts.known()) {
    text += fmt::format("unknown {}\n", *facts.unknown);
  } else {
    text += fmt::format("grade {}\n", static_cast<uint32_t>(facts.grade));
    for (const auto& [impurity, where] : facts.impurities) {
      text += fmt::format("impurity {}\n", static_cast<uint32_t>(impurity));
    }
    for (const auto& [site, where] : facts.sites) {
      text += fmt::format("site {} {} {:d} {:d}{}", static_cast<uint32_t>(site.how), static_cast<uint32_t>(site.grade),
                          site.descriptor, site.derived, words_of(facts, site.numbers));
      for (const std::set<Base>& choice : site.choices) text += " choice" + words_of(facts, choice);
      text += " end\n";
    }
    for (const auto& [base, uses] : facts.uses) text += fmt::format("use{} {}\n", word_of(facts, base), bits_of(uses));
  }
  return text + fmt::format("{}{:016x}\n", kChecksum, checksum_of(text));
}

Result<CodeFacts> from_text(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kHead + std::to_string(facts::kCodeVersion)) {
    return damaged("it holds no code facts of this version");
  }
  Reader reader;
  size_t at = line.size() + 1;
  for (size_t count = 0; count < kMostLines && std::getline(lines, line); ++count) {
    if (line.starts_with(kChecksum)) {
      const std::string wanted = fmt::format("{}{:016x}", kChecksum, checksum_of(text.substr(0, at)));
      if (line != wanted || at + line.size() + 1 != text.size()) return damaged("its checksum is wrong");
      return reader.take();
    }
    if (!reader.line(line)) return damaged("it has a line that is none of its own");
    at += line.size() + 1;
  }
  return damaged("it ends early");
}

}  // namespace reprise::code
