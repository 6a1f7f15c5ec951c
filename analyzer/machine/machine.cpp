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

}  // namespace

Machine machine_of(const trace::Trace& trace) {
  Machine machine;
  machine.h2d_bytes_per_s = number(trace, "link.h2d_bytes_per_s", machine.h2d_bytes_per_s);
  machine.d2h_bytes_per_s = number(trace, "link.d2h_bytes_per_s", machine.d2h_bytes_per_s);
  machine.latency_ns = static_cast<uint64_t>(number(trace, "link.latency_ns", static_cast<double>(machine.latency_ns)));
  machine.memory_bytes_per_s = number(trace, "memory.bytes_per_s", machine.memory_bytes_per_s);
  return machine;
}

uint64_t copy_ns(uint64_t bytes, double bytes_per_s, uint64_t latency_ns) {
  return latency_ns + static_cast<uint64_t>(std::llround(static_cast<double>(bytes) / bytes_per_s * 1e9));
}

}  // namespace reprise::analyzer
