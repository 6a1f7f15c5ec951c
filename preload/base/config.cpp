#include "preload/base/config.h"

#include <pthread.h>

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "preload/base/causes.h"
#include "preload/base/misspelt.h"
#include "preload/base/written_files.h"
#include "preload/files/file_names.h"

namespace reprise {
namespace {

// Each type knows how to read its text into a field; false: not readable.
bool read_value(const char* text, bool* field) { return read_switch(text, field); }
template <std::unsigned_integral Number>
bool read_value(const char* text, Number* field) {
  WrittenAmount written;
  if (read_amount(text, &written) != AmountProblem::none || written.is_percent) return false;
  if (written.bytes > std::numeric_limits<Number>::max()) return false;
  *field = static_cast<Number>(written.bytes);
  return true;
}
bool read_value(const char* text, Amount* field) { return parse_amount(text, field); }
bool read_value(const char* text, DeviceBudget* field) {
  field->free = std::strcmp(text, kFreeMemory) == 0;
  return field->free || parse_amount(text, field);
}
bool read_value(const char* text, const char** field) {
  const char* copy = strdup(text);  // the program may change its environment later
  if (copy != nullptr) *field = copy;
  return copy != nullptr;
}

bool one_of(const char* text, const char* choices) {
  const size_t length = std::strlen(text);
  for (const char* at = choices; *at != '\0';) {
    const size_t word = std::strcspn(at, "|");
    if (word == length && std::strncmp(at, text, word) == 0) return true;
    at += word;
    if (*at == '|') ++at;
  }
  return false;
}

constexpr ConfigVariable kVariables[] = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) {name, values, standard, help},
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
};

template <typename Field>
void read_variable(const ConfigVariable& variable, EnvironmentLookup lookup, Field* field) {
  const char* text = lookup(variable.name);
  if (text == nullptr || *text == '\0') text = variable.standard;
  if (*text == '\0') return;
  const bool listed = std::strchr(variable.type, '|') == nullptr || one_of(text, variable.type);
  if (listed && read_value(text, field)) return;
  say<Cause::variable_unreadable>(variable.name, text, why_unreadable(variable, text),
                                  *variable.standard != '\0' ? variable.standard : phrase<Cause::as_if_unset>());
  if (*variable.standard != '\0') read_value(variable.standard, field);
}

Config* process_config = nullptr;
pthread_once_t read_once = PTHREAD_ONCE_INIT;

const char* environment(const char* name) { return std::getenv(name); }

void expand(const char** name) {
  if (*name == nullptr || std::strchr(*name, '%') == nullptr) return;
  if (const char* const copy = strdup(expanded_name(*name, environment).c_str())) *name = copy;
}

void read_process_config() {
  process_config = new Config(read_config(environment));
  for (const char** name : {&process_config->trace, &process_config->run_log, &process_config->plan}) expand(name);
  keep_files_apart(process_config);
}

}  // namespace

Config read_config(EnvironmentLookup lookup) noexcept {
  Config result;
  size_t row = 0;
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) \
  read_variable(kVariables[row++], lookup, &result.field);
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
  return result;
}

namespace {

constexpr const char* kDevelopers[] = {
#define REPRISE_LONE_VARIABLE(name, values, standard, help) name,
#include "preload/base/developers.def"
#undef REPRISE_LONE_VARIABLE
};

// The simulated device's, which says so itself, the counting library's, the probe's, a test's.
bool is_of_others(const std::string& rest) {
  for (const char* prefix : {"SIM_", "COUNT_", "CUPTI", "TEST_"}) {
    if (rest.starts_with(prefix)) return true;
  }
  return std::any_of(std::begin(kDevelopers), std::end(kDevelopers),
                     [&](const char* name) { return "REPRISE_" + rest == name; });
}

}  // namespace

void say_misspelt(const char* const* environment) noexcept {
  std::vector<std::string> known;
  for (const ConfigVariable& variable : kVariables) known.emplace_back(variable.name);
  for_unknown_variables(environment, known, 2, [](const std::string& rest, const std::string& meant) {
    if (is_of_others(rest)) return;
    if (meant.empty()) {
      say<Cause::variable_unknown>(rest);
    } else {
      say<Cause::variable_misspelt>(rest, meant);
    }
  });
}

namespace {

// A variable that does nothing on its own, and what it needs.
struct Dependent {
  const char* name;
  bool (*works)(const Config& config);
  const char* needs;
  const char* standard = "0";  // the value that is as good as none
};

bool manages(const Config& config) { return config.manages(); }
bool plans(const Config& config) { return config.manages() && config.plan == nullptr; }
bool has_budget(const Config& config) { return config.budget.given(); }
bool examines(const Config& config) { return config.examine != 0; }
bool audits(const Config& config) { return config.audit; }
bool defragments(const Config& config) { return config.defragment; }
bool records(const Config& config) { return config.trace != nullptr || plans(config); }
bool times(const Config& config) { return config.trace != nullptr || manages(config); }

constexpr const char* kUnlessManaging = phrase<Cause::unless_managing>();
constexpr const char* kPlanning = phrase<Cause::unless_planning>();
constexpr Dependent kDependents[] = {
    {"REPRISE_RUN_LOG", [](const Config& config) { return manages(config) || defragments(config); }, kUnlessManaging},
    {"REPRISE_SAFETY", manages, kUnlessManaging},
    {"REPRISE_HOST_MEMORY", manages, kUnlessManaging},
    {"REPRISE_EXAMINE", manages, kUnlessManaging},
    {"REPRISE_EXAMINE_MEMORY", examines, phrase<Cause::unless_examining>()},
    {"REPRISE_AUDIT", has_budget, phrase<Cause::unless_budget>()},
    {"REPRISE_AUDIT_ITERATIONS", audits, phrase<Cause::unless_audit>()},
    {"REPRISE_POLICY", plans, kPlanning},
    {"REPRISE_PLAN_LIMIT", plans, kPlanning},
    {"REPRISE_WAIT_FOR_PLAN", plans, kPlanning},
    {"REPRISE_KEEP", plans, kPlanning},
    {"REPRISE_KEEP_PLANS", plans, kPlanning},
    {"REPRISE_FACTS", manages, kUnlessManaging},
    {"REPRISE_ACTIVITY", times, phrase<Cause::unless_timed>()},
    {"REPRISE_CALL_SITES", records, phrase<Cause::unless_recording>(), "1"},
    {"REPRISE_FRAGMENTATION_LIMIT", defragments, phrase<Cause::unless_defragmenting>()},
};

}  // namespace

namespace {

// A switch may be written in several ways.
bool is_same_value(const char* one, const char* other) {
  bool first = false;
  bool second = false;
  if (read_switch(one, &first) && read_switch(other, &second)) return first == second;
  return std::strcmp(one, other) == 0;
}

}  // namespace

void say_without_effect(const Config& config, EnvironmentLookup lookup) noexcept {
  for (const Dependent& one : kDependents) {
    const char* const text = lookup(one.name);
    if (text == nullptr || *text == '\0' || is_same_value(text, one.standard) || one.works(config)) continue;
    say<Cause::variable_without_effect>(one.name, one.needs);
  }
}

namespace {
constexpr const char* kOffSwitch = "REPRISE_DISABLE";
}  // namespace

bool disabled() noexcept {
  const char* const text = std::getenv(kOffSwitch);
  if (text == nullptr || *text == '\0') return false;
  bool off = true;  // also where it cannot be read: whoever sets it wants to be left alone
  read_switch(text, &off);
  return off;
}

void say_unreadable_switch() noexcept {
  const char* const text = std::getenv(kOffSwitch);
  bool off = false;
  if (text == nullptr || *text == '\0' || read_switch(text, &off)) return;
  say<Cause::switch_unreadable>(kOffSwitch, text);
}

const Config& config() noexcept {
  pthread_once(&read_once, read_process_config);
  return *process_config;
}

namespace {

// What is only text is always readable, and would be copied.
template <typename Field>
bool is_readable(const ConfigVariable& variable, const char* text) {
  if (std::strchr(variable.type, '|') != nullptr) return one_of(text, variable.type);
  Field field{};
  return std::is_same_v<Field, const char*> || read_value(text, &field);
}

}  // namespace

const char* why_unreadable(const ConfigVariable& variable, const char* text) noexcept {
  if (std::strcmp(variable.type, "bool") == 0) return "0 or 1";
  return std::strcmp(variable.type, "amount") == 0 ? why_no_amount(text) : variable.type;
}

std::vector<ConfigVariable> unreadable_variables(EnvironmentLookup lookup) {
  std::vector<ConfigVariable> result;
  size_t row = 0;
  const auto look_at = [&](bool (*readable)(const ConfigVariable&, const char*)) {
    const ConfigVariable& variable = kVariables[row++];
    const char* const text = lookup(variable.name);
    if (text != nullptr && *text != '\0' && !readable(variable, text)) result.push_back(variable);
  };
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) look_at(is_readable<Field>);
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
  return result;
}

const ConfigVariable* config_variables(size_t* count) noexcept {
  *count = sizeof kVariables / sizeof kVariables[0];
  return kVariables;
}

}  // namespace reprise
