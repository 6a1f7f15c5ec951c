// `reprise facts`: what is known of kernels on this machine, why, and how to forget it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "preload/facts/store.h"
#include "preload/trace/names.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/sizes.h"

namespace reprise::tools {
namespace {

using facts::Answer;
using facts::KernelFacts;
using facts::SlotEvidence;

struct FactsArguments {
  std::string kernel;  // part of the names
  std::string folder;
  bool remove = false;
};

const char* word(Answer answer, const char* yes, const char* no, const char* unknown) {
  return answer == Answer::yes ? yes : answer == Answer::no ? no : unknown;
}

std::string use_of(const KernelFacts& known, const SlotEvidence& slot) {
  const Answer writes = facts::writes(known, slot.parameter_offset);
  if (writes == Answer::no) return "reads";
  if (writes == Answer::unknown) return "?";
  return facts::reads(known, slot.parameter_offset) == Answer::no ? "writes" : "updates";
}

// Of the shapes that an audit has seen.
std::string audit_of(const KernelFacts& known) {
  if (known.strayed != 0) return "strays";
  if (known.shapes.empty()) return "-";
  size_t audited = 0;
  for (const facts::AuditedShape& shape : known.shapes) {
    if (facts::audited(known, shape.shape) == Answer::yes) ++audited;
  }
  return audited == known.shapes.size() ? "audited" : fmt::format("{} of {}", audited, known.shapes.size());
}

std::string line_of(const KernelFacts& known) {
  std::string uses;
  for (const SlotEvidence& slot : known.slots) {
    uses += fmt::format("{}{}:{}", uses.empty() ? "" : " ", slot.parameter_offset, use_of(known, slot));
  }
  return fmt::format("{:<9} {:>8} {:>8}  {}  {}\n", word(facts::pure(known), "pure", "not pure", "?"), known.launches,
                     audit_of(known), trace::short_name(known.name), uses);
}

std::string explanation_of(const KernelFacts& known) {
  std::string text = fmt::format("{}\n  {:016x} on {}, {} launches, {} to {}\n", known.name, known.kernel, known.device,
                                 known.launches, known.first_day, known.last_day);
  text += fmt::format("  {}: launched again from the same bytes, {} gave the same bytes, {} did not\n",
                      word(facts::pure(known), "pure", "not pure", "not known to be pure"), known.equal, known.unequal);
  text += fmt::format("  audit: {}; {} launches of {} shapes touched nothing but their operands, {} touched more\n",
                      audit_of(known), facts::audited_launches(known), known.shapes.size(), known.strayed);
  for (const SlotEvidence& slot : known.slots) {
    const std::string sizes = slot.least_bytes == slot.most_bytes
                                  ? format_bytes(slot.most_bytes)
                                  : format_bytes(slot.least_bytes) + " to " + format_bytes(slot.most_bytes);
    text += fmt::format(
        "  operand at {}, {}: {}. overwritten {}, written {}, updated {}, kept {} times; the same but not tried {}; "
        "others changed "
        "with it {}\n",
        slot.parameter_offset, sizes, use_of(known, slot), slot.overwritten, slot.written, slot.updated, slot.kept,
        slot.same, slot.reached);
    if (slot.guarded + slot.led == 0) continue;
    text += fmt::format("    in audits: could only be read {} times, and was not written; led astray {} times\n",
                        slot.guarded, slot.led);
  }
  return text;
}

int run_facts(const FactsArguments& arguments) {
  const std::string folder =
      arguments.folder.empty() ? facts::folder_of_facts(std::getenv("REPRISE_FACTS")) : arguments.folder;
  if (folder.empty()) {
    return fail({StatusCode::invalid_argument, "neither HOME nor XDG_CACHE_HOME is set; say --folder"});
  }
  const facts::Store store(folder);
  std::vector<std::string> problems;
  const std::vector<KernelFacts> all = store.all(&problems);
  for (const std::string& problem : problems) say(problem);
  std::string text;
  size_t found = 0;
  for (const KernelFacts& known : all) {
    if (known.name.find(arguments.kernel) == std::string::npos &&
        trace::short_name(known.name).find(arguments.kernel) == std::string::npos) {
      continue;
    }
    ++found;
    if (arguments.remove) {
      if (Status status = store.remove(known.kernel, known.device); !status.ok()) return fail(status);
    } else {
      text += arguments.kernel.empty() ? line_of(known) : explanation_of(known);
    }
  }
  if (found == 0 && !arguments.kernel.empty()) {
    return fail(
        {StatusCode::not_found, fmt::format("{}: nothing is known of a kernel named {}", folder, arguments.kernel)});
  }
  if (arguments.remove) say(fmt::format("{}: {} kernels forgotten", folder, found));
  if (arguments.remove) return 0;
  if (found == 0) {
    say(fmt::format(
        "{}: nothing is known; `reprise run --examine SECONDS` and `reprise audit` find out what a program's "
        "kernels do",
        folder));
    return 0;
  }
  const std::string head = arguments.kernel.empty() ? "          launches    audit  kernel  operands\n" : "";
  const Status written = write_file("-", head + text);
  return written.ok() ? 0 : fail(written);
}

}  // namespace

Action declare_facts(CLI::App& app, const ProgramArguments&) {
  auto arguments = std::make_shared<FactsArguments>();
  app.add_option("kernel", arguments->kernel,
                 "Part of a kernel's name: says how it is known (default: a line for each)");
  app.add_option("--folder", arguments->folder, "Where to look (default: REPRISE_FACTS, or the cache folder)");
  app.add_flag("--remove", arguments->remove, "Forget these kernels, without a name all");
  return [arguments] { return run_facts(*arguments); };
}

}  // namespace reprise::tools
