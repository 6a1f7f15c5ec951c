#include "tools/device/base/settings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "preload/base/amount.h"
#include "preload/base/misspelt.h"

namespace reprise::sim {
namespace {

void complain(const char* name, const char* text) {
  std::fprintf(stderr, "reprise: simulated device: %s=%s cannot be read; the default holds\n", name, text);
}

// What a number must be besides readable.
bool possible(const char* name, uint64_t value) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("REPRISE_SIM_GRANULARITY")) return value >= 4096 && (value & (value - 1)) == 0;
  if (is("REPRISE_SIM_ARCHITECTURE")) return value >= 10 && value <= 999;
  if (is("REPRISE_SIM_DEVICES")) return value >= 1 && value <= 64;
  if (is("REPRISE_SIM_QUEUE_DEPTH")) return value >= 1 && value <= 1u << 30;
  if (is("REPRISE_SIM_VERSION")) return value >= 12000 && value < 100000;
  return true;
}

// Each type knows how to read its text; false: not readable.
bool read_value(const char* name, const char* text, uint64_t* value) {
  uint64_t number = 0;
  if (!parse_size(text, &number) || !possible(name, number)) return false;
  *value = number;
  return true;
}

bool read_value(const char* name, const char* text, uint32_t* value) {
  uint64_t number = 0;
  if (!read_value(name, text, &number) || number > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(number);
  return true;
}

bool read_value(const char*, const char* text, Microseconds* value) {
  char* end = nullptr;
  const double microseconds = std::strtod(text, &end);
  if (*end != 0 || !(microseconds >= 0) || microseconds > 1e9) return false;
  value->nanoseconds = static_cast<uint64_t>(microseconds * 1000);
  return true;
}

bool read_value(const char*, const char* text, bool* value) { return read_switch(text, value); }

bool read_value(const char*, const char* text, const char** value) {
  *value = strdup(text);
  return true;
}

template <typename Field>
void read_variable(const char* name, const char* standard, Field* field) {
  const char* text = std::getenv(name);
  if (text != nullptr && *text != 0) {
    if (read_value(name, text, field)) return;
    complain(name, text);
  }
  if (*standard != 0) read_value(name, standard, field);
}

// So is what is kinder than a GPU: a program that does well then has shown less.
template <typename Field>
void read_kind(const char* name, const char* standard, Field* field, bool (*is_kind)(Field)) {
  read_variable(name, standard, field);
  if (is_kind(*field))
    std::fprintf(stderr, "reprise: simulated device: %s=%s: kinder than a GPU\n", name, std::getenv(name));
}

// A trait is said: a run on a driver that is unlike others shall look like one.
template <typename Field>
void read_trait(const char* name, const char* standard, Field* field) {
  read_variable(name, standard, field);
  const char* text = std::getenv(name);
  if (text != nullptr && *text != 0) std::fprintf(stderr, "reprise: simulated device: %s=%s\n", name, text);
}

// A program that was not started by the launcher, which has looked already, may have the preloaded library or none.
void say_misspelt() {
  if (std::getenv("REPRISE_LAUNCHER") != nullptr) return;
  const std::vector<std::string> known = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) name,
#define REPRISE_LONE_VARIABLE(name, values, standard, help) name,
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
  };
  for_unknown_variables(environ, known, 2, [](const std::string& rest, const std::string& meant) {
    if (!meant.empty()) {
      std::fprintf(stderr, "reprise: simulated device: REPRISE_%s: no such variable; did you mean REPRISE_%s?\n",
                   rest.c_str(), meant.c_str());
    } else if (rest.starts_with("SIM_")) {  // others are the library's, or none of ours
      std::fprintf(stderr, "reprise: simulated device: REPRISE_%s: no such variable; see 'reprise help environment'\n",
                   rest.c_str());
    }
  });
}

Settings read_settings() {
  Settings s;
  say_misspelt();
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) read_variable(name, standard, &s.field);
#define REPRISE_KIND(field, name, Field, kind, values, standard, help) \
  read_kind<Field>(name, standard, &s.field, [](Field value) { return kind; });
#define REPRISE_TRAIT(field, name, Field, values, standard, help) read_trait(name, standard, &s.field);
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
  return s;
}

}  // namespace

bool parse_size(const char* text, uint64_t* bytes) noexcept {
  WrittenAmount written;
  if (read_amount(text, &written) != AmountProblem::none || written.is_percent) return false;
  *bytes = written.bytes;
  return true;
}

const Settings& settings() noexcept {
  static const Settings& instance = *new Settings(read_settings());
  return instance;
}

}  // namespace reprise::sim
