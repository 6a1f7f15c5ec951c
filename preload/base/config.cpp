#include "preload/base/config.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "preload/base/log.h"

namespace reprise {
namespace {

// Each type knows how to read its text into a field; false: not readable.
bool read_value(const char* text, bool* field) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (std::strcmp(text, yes) == 0) return *field = true, true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (std::strcmp(text, no) == 0) return *field = false, true;
  }
  return false;
}
bool read_value(const char* text, Amount* field) { return parse_amount(text, field); }
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

// REPRISE_VARIABLE(field, name, type, default as text, help). A type with '|' is a list of choices.
#define REPRISE_VARIABLES(VARIABLE)                                                                                    \
  VARIABLE(disable, "REPRISE_DISABLE", "bool", "0", "forward everything, do nothing else; read before all others")     \
  VARIABLE(budget, "REPRISE_BUDGET", "amount", "",                                                                     \
           "device memory: 12GiB, 800MiB, bytes, or 50% of the program's peak")                                        \
  VARIABLE(defragment, "REPRISE_DEFRAGMENT", "bool", "0",                                                              \
           "large allocations are stitched together from what is free; without a budget or a trace only")              \
  VARIABLE(fragmentation_limit, "REPRISE_FRAGMENTATION_LIMIT", "amount", "",                                           \
           "pieces of memory below this are neither split nor stitched while there is other memory; default: a chunk") \
  VARIABLE(trace, "REPRISE_TRACE", "path", "", "record into this file")                                                \
  VARIABLE(plan, "REPRISE_PLAN", "path", "", "enforce this plan instead of planning while the program runs")           \
  VARIABLE(run_log, "REPRISE_RUN_LOG", "path", "", "what the replay did, as JSON lines")                               \
  VARIABLE(driver, "REPRISE_DRIVER", "path", "", "the real libcuda.so.1, where it is in no usual place")               \
  VARIABLE(planner, "REPRISE_PLANNER", "path", "", "the reprise program; default: ../../bin/reprise from the library") \
  VARIABLE(policy, "REPRISE_POLICY", "text", "auto", "planning policy, as for reprise plan --policy")                  \
  VARIABLE(host_memory, "REPRISE_HOST_MEMORY", "amount", "80%", "most host memory to keep tensors in; % of available") \
  VARIABLE(activity, "REPRISE_ACTIVITY", "auto|cupti|events|sim|none", "auto", "where device times come from")         \
  VARIABLE(log, "REPRISE_LOG", "warn|info|debug", "warn", "how much to say on stderr")                                 \
  VARIABLE(wait_for_plan, "REPRISE_WAIT_FOR_PLAN", "bool", "0",                                                        \
           "the program waits for the planner instead of going on: which iteration is the first planned one is fixed") \
  VARIABLE(keep, "REPRISE_KEEP", "bool", "0", "keep temporary files")                                                  \
  VARIABLE(call_sites, "REPRISE_CALL_SITES", "bool", "1", "record the call stack of each call")

constexpr ConfigVariable kVariables[] = {
#define REPRISE_TABLE_ROW(field, name, type, standard, help) {name, type, standard, help},
    REPRISE_VARIABLES(REPRISE_TABLE_ROW)
#undef REPRISE_TABLE_ROW
};

template <typename Field>
void read_variable(const ConfigVariable& variable, EnvironmentLookup lookup, Field* field) {
  const char* text = lookup(variable.name);
  if (text == nullptr || *text == '\0') text = variable.standard;
  if (*text == '\0') return;
  const bool listed = std::strchr(variable.type, '|') == nullptr || one_of(text, variable.type);
  if (listed && read_value(text, field)) return;
  log_line(LogLevel::warn, "%s=%s is not readable (%s); using %s", variable.name, text, variable.type,
           *variable.standard != '\0' ? variable.standard : "nothing");
  if (*variable.standard != '\0') read_value(variable.standard, field);
}

Config* process_config = nullptr;
pthread_once_t read_once = PTHREAD_ONCE_INIT;

const char* environment(const char* name) { return std::getenv(name); }

void read_process_config() { process_config = new Config(read_config(environment)); }

}  // namespace

Config read_config(EnvironmentLookup lookup) noexcept {
  Config result;
  size_t row = 0;
#define REPRISE_READ(field, name, type, standard, help) read_variable(kVariables[row++], lookup, &result.field);
  REPRISE_VARIABLES(REPRISE_READ)
#undef REPRISE_READ
  return result;
}

const Config& config() noexcept {
  pthread_once(&read_once, read_process_config);
  return *process_config;
}

const ConfigVariable* config_variables(size_t* count) noexcept {
  *count = sizeof kVariables / sizeof kVariables[0];
  return kVariables;
}

}  // namespace reprise
