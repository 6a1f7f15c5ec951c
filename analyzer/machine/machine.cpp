#include "analyzer/machine/machine.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace reprise::analyzer {
namespace {

double number(const trace::Trace& trace, const char* key, double fallback) {
  const auto found = trace.info.find(key);
  if (found == trace.info.end()) return fallback;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  const bool good = end != found->second.c_str() && std::isfinite(value) && value > 0;
  return good ? value : fallback;
}

template <typename Number>
void take(const trace::Trace& trace, const char* key, Number* value) {
  *value = static_cast<Number>(number(trace, key, static_cast<double>(*value)));
}

}  // namespace

Machine machine_of(const trace::Trace& trace) {
  Machine machine;
#define REPRISE_MEASURED(field, key, ...) take(trace, key, &machine.field);
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
  machine.link_assumed = number(trace, "link.h2d_bytes_per_s", 0) == 0 || number(trace, "link.d2h_bytes_per_s", 0) == 0;
  return machine;
}

std::optional<double> ssd_years(const Machine& machine, uint64_t written_bytes, uint64_t iteration_ns) {
  constexpr double kGrantedDays = 5 * 365;
  constexpr double kYear = 365 * 86400e9;  // in nanoseconds
  if (written_bytes == 0 || machine.ssd_bytes == 0) return std::nullopt;
  const double granted = machine.ssd_writes_per_day * kGrantedDays * static_cast<double>(machine.ssd_bytes);
  return granted / static_cast<double>(written_bytes) * static_cast<double>(iteration_ns) / kYear;
}

uint64_t copy_ns(uint64_t bytes, double bytes_per_s, uint64_t latency_ns) {
  return latency_ns + static_cast<uint64_t>(std::llround(static_cast<double>(bytes) / bytes_per_s * 1e9));
}

}  // namespace reprise::analyzer
