#include "tools/report/log/links.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/cli/sizes.h"

namespace reprise::report {
namespace {

bool is_far_apart(uint64_t one_rate, uint64_t other_rate) {
  const auto [less, more] = std::minmax(one_rate, other_rate);
  return 10 * (more - less) > more;
}

}  // namespace

LinkRates link_of(const RunLog& log) { return {log.link_h2d_bytes_per_s, log.link_d2h_bytes_per_s}; }
LinkRates link_of(const plan::PlannedLink& link) { return {link.h2d_bytes_per_s, link.d2h_bytes_per_s}; }

bool are_far_apart(const LinkRates& one, const LinkRates& other) {
  return is_far_apart(one.to_device, other.to_device) || is_far_apart(one.to_host, other.to_host);
}

std::string words_of(const LinkRates& link) {
  return link.known() ? tools::format_link(link.to_device, link.to_host) : "not known";
}

std::string words_of(const plan::PlannedLink& link, bool with_times) {
  std::string text = tools::format_link(link.h2d_bytes_per_s, link.d2h_bytes_per_s);
  if (with_times) {
    text += fmt::format(", {} a copy, {} to map a chunk", tools::format_duration(link.latency_ns),
                        tools::format_duration(link.remap_ns_per_chunk));
  }
  if (link.assumed) return text + " (assumed)";
  return link.machine.empty() ? text + " (measured)" : fmt::format("{} ({})", text, link.machine);
}

}  // namespace reprise::report
