#include "preload/measure/link.h"

#include <algorithm>

#include "preload/measure/link_timer.h"

namespace reprise {
namespace {
constexpr uint64_t kSmallBytes = 64;
constexpr uint64_t kUnlike = 2;
}  // namespace

bool measure_copies(const LinkEnds& ends, LinkRates* rates) noexcept {
  const LinkTimer in(ends.to_device);
  const LinkTimer out(ends.to_host);
  const auto to_device = [&](uint64_t bytes) {
    return driver().cuMemcpyHtoDAsync(ends.device, ends.host, bytes, in.stream());
  };
  const auto to_host = [&](uint64_t bytes) {
    return driver().cuMemcpyDtoHAsync(ends.host, ends.device, bytes, out.stream());
  };
  rates->h2d_bytes_per_s = in.rate(ends.bytes, to_device);
  rates->d2h_bytes_per_s = out.rate(ends.bytes, to_host);
  if (rates->h2d_bytes_per_s == 0 || rates->d2h_bytes_per_s == 0) return false;
  // A host that was late with every try makes one direction seem slow; links that are as unlike as that are rare.
  if (rates->h2d_bytes_per_s < rates->d2h_bytes_per_s / kUnlike) {
    rates->h2d_bytes_per_s = std::max(rates->h2d_bytes_per_s, in.rate(ends.bytes, to_device));
  } else if (rates->d2h_bytes_per_s < rates->h2d_bytes_per_s / kUnlike) {
    rates->d2h_bytes_per_s = std::max(rates->d2h_bytes_per_s, out.rate(ends.bytes, to_host));
  }
  in.timed(kSmallBytes, 1, 0, to_device);
  rates->latency_ns = in.least_ns(kSmallBytes, 1, 0, to_device);
  return rates->latency_ns != 0;
}

}  // namespace reprise
