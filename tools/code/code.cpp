#include "tools/code/code.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "analyzer/code/facts.h"
#include "analyzer/proofs/disassembler.h"
#include "analyzer/proofs/image_analysis.h"
#include "analyzer/proofs/licence.h"
#include "preload/images/code.h"
#include "preload/trace/names.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"

namespace reprise::tools {
namespace {

struct CodeArguments {
  std::string image;
  std::vector<std::string> kernels;  // parts of names
  uint32_t architecture = images::kAnyArchitecture;
  bool explain = false;
};

using code::Base;
using code::BaseKind;
using code::CodeFacts;
using code::WordUses;

std::string name_of(const CodeFacts& facts, const Base& base) {
  switch (base.kind) {
    case BaseKind::parameter:
      return fmt::format("{}", base.key);
    case BaseKind::computed:
      return fmt::format("[{}+i]", static_cast<int32_t>(facts.symbols.place(base.key).displacement));
    case BaseKind::module:
      return facts.symbols.name(base.key);
    case BaseKind::driver:
      return "driver";
    case BaseKind::heap:
      return "malloc";
    case BaseKind::constants:
      return "constant memory";
    case BaseKind::product:
      return "a product";
    case BaseKind::loaded:
      if (base.key == code::kUnresolved || base.key == code::kDescriptor) return "what was loaded";
      return "what was loaded through " + name_of(facts, facts.symbols.base(base.key));
    default:
      return "?";
  }
}

std::string use_of(const WordUses& uses) {
  std::string text = uses.atomic                 ? "atomic"
                     : uses.read && uses.written ? "reads,writes"
                     : uses.read                 ? "reads"
                     : uses.written              ? "writes"
                                                 : "";
  if (uses.index) text += text.empty() ? "index" : ",index";
  if (uses.stored) text += text.empty() ? "stored" : ",stored";
  return text;
}

bool is_word(const Base& base) { return !code::is_loaded(base.kind) && !code::is_outside(base.kind); }

std::string line_of(const CodeFacts& facts) {
  const std::string name = trace::short_name(facts.kernel);
  if (!facts.known()) return fmt::format("{:<8} {:<8}  {}  {}\n", "unknown", "?", name, *facts.unknown);
  std::string uses;
  for (const auto& [base, use] : facts.uses) {
    if (is_word(base)) uses += fmt::format(" {}:{}", name_of(facts, base), use_of(use));
  }
  return fmt::format("{:<8} {:<8}  {} {}\n", code::name_of(facts.grade), facts.repeats() ? "repeats" : "-", name, uses);
}

std::string list_of(const CodeFacts& facts, const std::set<Base>& bases) {
  std::string text;
  for (const Base& base : bases) text += fmt::format("{}{}", text.empty() ? "" : " or ", name_of(facts, base));
  return text;
}

std::string site_text(const CodeFacts& facts, const code::Site& site, const std::string& instruction) {
  constexpr const char* kHow[] = {"reads", "writes", "updates"};
  std::string text = fmt::format("  {} ({})", kHow[static_cast<size_t>(site.how)],
                                 site.derived ? "derived" : code::name_of(site.grade));
  const char* between = " ";
  for (const std::set<Base>& choice : site.choices) {
    const std::string bases = list_of(facts, choice);
    text += between + (bases.empty() ? std::string("what is not known") : bases);
    between = "; ";
  }
  if (!site.numbers.empty()) text += ", if no address is " + list_of(facts, site.numbers);
  return text + fmt::format(": {}\n", instruction);
}

std::string explanation_of(const CodeFacts& facts) {
  std::string text = fmt::format("{}\n", facts.kernel);
  if (!facts.known()) return text + fmt::format("  unknown: {}\n", *facts.unknown);
  text += fmt::format("  {}{}\n", code::name_of(facts.grade), facts.worst.empty() ? "" : ": " + facts.worst);
  std::set<uint32_t> words;
  for (const images::ParameterImage& parameter : facts.parameters) {
    for (uint32_t at = parameter.offset & ~7U; at < parameter.offset + parameter.bytes; at += 8) words.insert(at);
  }
  for (const uint32_t word : words) {
    const auto found = facts.uses.find({BaseKind::parameter, word});
    const std::string use = found == facts.uses.end() ? "" : use_of(found->second);
    text += fmt::format("  word at {}: {}\n", word, use.empty() ? "no address" : use);
  }
  for (const auto& [site, instruction] : facts.sites) text += site_text(facts, site, instruction);
  for (const auto& [impurity, instruction] : facts.impurities) {
    text += fmt::format("  {}{}: {}\n", code::name_of(impurity), code::is_harmless(impurity) ? "" : " (may not repeat)",
                        instruction);
  }
  return text;
}

bool is_wanted(const std::string& name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return name.find(part) != std::string::npos || trace::short_name(name).find(part) != std::string::npos;
         });
}

struct Answer {
  std::string text;
  size_t kernels = 0;
};

Status look_into(const CodeArguments& arguments, const std::string& program, const std::string& cubin, Answer& answer) {
  const auto found =
      code::analyse_cubin(program, cubin, [&](const std::string& name) { return is_wanted(name, arguments.kernels); });
  if (!found.ok()) return found.status();
  answer.kernels += found.value().size();
  for (const CodeFacts& facts : found.value()) {
    answer.text += arguments.explain ? explanation_of(facts) : line_of(facts);
  }
  return {};
}

int run_code(const CodeArguments& arguments) {
  if (code::is_nvidias_file(arguments.image)) {
    return fail({StatusCode::unsupported, fmt::format("{}: {}", arguments.image, code::kNotDisassembled)});
  }
  const auto content = read_file(arguments.image);
  if (!content.ok()) return fail(content.status());
  const char* named = std::getenv("REPRISE_NVDISASM");
  const auto program = code::find_disassembler(named == nullptr ? "" : named);
  Answer answer;
  const auto look = [&](const std::string& cubin) {
    return program.ok() ? look_into(arguments, program.value(), cubin, answer) : program.status();
  };
  if (const Status status = images::each_cubin(content.value(), arguments.architecture, look); !status.ok()) {
    return fail({status.code(), arguments.image + ": " + status.message()});
  }
  if (answer.kernels == 0) {
    return fail({StatusCode::not_found, fmt::format("{}: no kernel of {} in it", arguments.image,
                                                    arguments.kernels.empty() ? "any name" : "such a name")});
  }
  const Status written = write_file("-", answer.text);
  return written.ok() ? 0 : fail(written);
}

}  // namespace

Action declare_code(CLI::App& app, const ProgramArguments&) {
  auto arguments = std::make_shared<CodeArguments>();
  app.add_option("image", arguments->image, "A cubin, a fatbin, or a program or library with such in it")->required();
  app.add_option("kernels", arguments->kernels, "Parts of kernels' names (default: all kernels)");
  app.add_option("--architecture", arguments->architecture,
                 "... of a fatbin: 90 for sm_90 (default: the newest, of each)");
  app.add_flag("--explain", arguments->explain, "Say of each kernel which instructions the answer comes from");
  return [arguments] { return run_code(*arguments); };
}

}  // namespace reprise::tools
