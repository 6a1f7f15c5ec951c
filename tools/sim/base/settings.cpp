#include "tools/sim/base/settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/base/amount.h"

namespace reprise::sim {
namespace {

void complain(const char* name, const char* text) {
  std::fprintf(stderr, "reprise: simulated device: %s=%s cannot be read; the default holds\n", name, text);
}

void read_size(const char* name, uint64_t* value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return;
  if (!parse_size(text, value)) complain(name, text);
}

void read_count(const char* name, uint32_t lowest, uint32_t highest, uint32_t* value) {
  uint64_t number = *value;
  read_size(name, &number);
  if (number < lowest || number > highest) {
    complain(name, std::getenv(name));
  } else {
    *value = static_cast<uint32_t>(number);
  }
}

void read_flag(const char* name, bool* value) {
  const char* text = std::getenv(name);
  if (text != nullptr && *text != 0) *value = std::strcmp(text, "0") != 0;
}

void read_latency(uint64_t* nanoseconds) {
  const char* text = std::getenv("REPRISE_SIM_LATENCY");
  if (text == nullptr || *text == 0) return;
  char* end = nullptr;
  const double microseconds = std::strtod(text, &end);
  if (*end != 0 || !(microseconds >= 0) || microseconds > 1e9) return complain("REPRISE_SIM_LATENCY", text);
  *nanoseconds = static_cast<uint64_t>(microseconds * 1000);
}

Settings read_settings() {
  Settings s;
  read_size("REPRISE_SIM_MEMORY", &s.memory_bytes);
  const uint64_t granularity = s.granularity;
  read_size("REPRISE_SIM_GRANULARITY", &s.granularity);
  if (s.granularity < 4096 || (s.granularity & (s.granularity - 1)) != 0) {
    complain("REPRISE_SIM_GRANULARITY", std::getenv("REPRISE_SIM_GRANULARITY"));
    s.granularity = granularity;
  }
  read_size("REPRISE_SIM_H2D", &s.h2d_bytes_per_second);
  read_size("REPRISE_SIM_D2H", &s.d2h_bytes_per_second);
  read_size("REPRISE_SIM_CONTEXT_BYTES", &s.context_bytes);
  read_latency(&s.latency_ns);
  read_count("REPRISE_SIM_DEVICES", 1, 64, &s.devices);
  read_count("REPRISE_SIM_QUEUE_DEPTH", 1, 1u << 30, &s.queue_depth);
  read_flag("REPRISE_SIM_POISON", &s.poison);
  read_flag("REPRISE_SIM_STRICT", &s.strict);
  const char* stats = std::getenv("REPRISE_SIM_STATS");
  if (stats != nullptr && *stats != 0) s.stats_path = strdup(stats);
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
