#include "tools/manual/variables.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "preload/base/misspelt.h"
#include "tools/cli/message.h"

namespace reprise::tools {
namespace {

constexpr size_t kMostLetters = 4;  // that a misspelt name differs by
// What the tests of one program only tell each other.
constexpr std::string_view kOfTests = "TEST_";

struct Row {
  std::string_view name;
  std::string_view values;
  std::string_view standard;
  std::string_view help;
};

#define REPRISE_VARIABLE(field, name, Field, values, standard, help) {name, values, standard, help},
#define REPRISE_LONE_VARIABLE(name, values, standard, help) {name, values, standard, help},
constexpr Row kLibrary[] = {
#include "preload/base/variables.def"
};
constexpr Row kSimulatedDevice[] = {
#include "tools/device/base/variables.def"
};
constexpr Row kProbe[] = {
#include "tools/lab/probe/output/variables.def"
};
constexpr Row kDevelopers[] = {
#include "preload/base/developers.def"
};
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE

// "auto|cupti" as "auto, cupti"; the types by what people write for them.
std::string values_of(const Row& row) {
  if (row.values == "bool") return "0 or 1";
  std::string text;
  for (const char letter : row.values) text += letter == '|' ? std::string(", ") : std::string(1, letter);
  return text;
}

// Help is Markdown, for the page has it, too; a terminal needs no quotes of code.
std::string plain(std::string_view markdown) {
  std::string text(markdown);
  std::erase(text, '`');
  return text;
}

template <size_t count>
VariableGroup group(const char* title, const Row (&rows)[count]) {
  VariableGroup made{title, {}};
  for (const Row& row : rows) {
    made.variables.push_back({std::string(row.name), values_of(row), std::string(row.standard), plain(row.help)});
  }
  return made;
}

}  // namespace

std::vector<VariableGroup> all_variables() {
  return {group("The preloaded library (reprise run, record and replay set what they need):", kLibrary),
          group("The simulated device (--device sim):", kSimulatedDevice),
          group("reprise-probe and libreprise_count.so:", kProbe)};
}

void say_unknown_variables() {
  std::vector<std::string> known;
  for (const VariableGroup& one : all_variables()) {
    for (const VariableText& variable : one.variables) known.push_back(variable.name);
  }
  for (const Row& row : kDevelopers) known.emplace_back(row.name);
  for_unknown_variables(environ, known, kMostLetters, [](const std::string& rest, const std::string& meant) {
    if (rest.starts_with(kOfTests)) return;
    say("REPRISE_" + rest + ": no such variable" +
        (meant.empty() ? "; see 'reprise help environment'" : "; did you mean REPRISE_" + meant + "?"));
  });
}

}  // namespace reprise::tools
