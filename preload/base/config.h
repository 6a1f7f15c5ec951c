// What the environment asks for. One table (variables.def) names every variable with its type, default and help; entry
// reads it once, after the off switch. A value that cannot be read costs one warning line and leaves the default.
// Callers: entry, which hands it to the enforcer and the defragmenter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "preload/base/amount.h"

namespace reprise {

namespace detail {
// What a field holds before it is read; a share is only known as text.
template <typename Field>
constexpr Field initial(const char* standard) noexcept {
  if constexpr (std::is_same_v<Field, bool>) {
    return *standard == '1';
  } else if constexpr (std::is_same_v<Field, const char*>) {
    return *standard != '\0' ? standard : nullptr;
  } else {
    return Field{};
  }
}
}  // namespace detail

// A field for each row of variables.def, which says what it means. A path or text without a default is nullptr.
struct Config {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) Field field = detail::initial<Field>(standard);
#include "preload/base/variables.def"
#undef REPRISE_VARIABLE
  // Is memory managed? A plan knows the budget that it was made for.
  bool manages() const noexcept { return budget.given() || plan != nullptr; }
  // By a `reprise` command, or by a program that one has started?
  bool launched() const noexcept { return launcher != 0; }
  uint64_t plan_chunk_bytes = 0;  // not a variable: what `plan` was made for, as the enforcer has read it
  bool trace_is_private = false;  // not a variable: `trace` is a temporary file of entry's making, to be removed
};

// REPRISE_DISABLE: with it, nothing else of the configuration is even looked at. Asks the environment each time.
bool disabled() noexcept;

// Says that the switch cannot be read, where it cannot.
void say_unreadable_switch() noexcept;

// The environment of this process, read on the first call; strings are copies that are never freed.
const Config& config() noexcept;

// Reads a Config from any environment; `lookup` answers nullptr for what is not set. Exposed for tests.
using EnvironmentLookup = const char* (*)(const char* name);
Config read_config(EnvironmentLookup lookup) noexcept;

// Says which variables of `environment` (ended by nullptr) begin with REPRISE_, are not in the table, and are close to
// one that is: they were misspelt, and have no effect. At the start of a process, off every hot path.
void say_misspelt(const char* const* environment) noexcept;

// Says which variables are set, and change nothing as others are not set, or are. At the same place.
void say_without_effect(const Config& config, EnvironmentLookup lookup) noexcept;

// The table, for documentation and tests.
struct ConfigVariable {
  const char* name;
  const char* type;
  const char* standard;
  const char* help;
};
const ConfigVariable* config_variables(size_t* count) noexcept;
// Those rows whose values read_config() cannot read in this environment, and says so. For who looks before a program
// runs.
std::vector<ConfigVariable> unreadable_variables(EnvironmentLookup lookup);
// What is wrong with such a value, or what it should have been.
const char* why_unreadable(const ConfigVariable& variable, const char* text) noexcept;

}  // namespace reprise
