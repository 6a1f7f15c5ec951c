#include "analyzer/simulate/engines.h"

#include <algorithm>
#include <cmath>

namespace reprise::analyzer {
namespace {

double together(double both, double alone) { return both > 0 ? std::min(both / alone, 1.0) : 1; }

}  // namespace

Engines::Engines(const Machine& machine, uint32_t devices)
    : devices_per_link_(std::max(machine.devices_per_link, 1u)),
      own_peer_links_(machine.peer_bytes_per_s > 0),
      works_(size_t{devices} * kPerDevice + 2),
      ends_(works_.size(), kIdle) {
  if (machine.has_ssd()) {
    const double links[] = {machine.h2d_bytes_per_s, machine.d2h_bytes_per_s};
    const double ssds[] = {machine.ssd_read_bytes_per_s, machine.ssd_write_bytes_per_s};
    for (size_t i = 0; i < 2; ++i) {
      // The SSD gets what it can take, but no more than half of the link while the host wants it, too.
      const double share = std::min(ssds[i], links[i] / 2);
      beside_ssd_[i] = (links[i] - share) / links[i];
      beside_host_[i] = share / std::min(ssds[i], links[i]);
    }
  }
  beside_other_ = {together(machine.h2d_together_bytes_per_s, machine.h2d_bytes_per_s),
                   together(machine.d2h_together_bytes_per_s, machine.d2h_bytes_per_s)};
}

void Engines::begin(Id engine, uint32_t node, uint64_t length_ns, uint64_t now, uint32_t link) {
  works_[engine] = {node, link, now, static_cast<double>(length_ns), 1};
  ends_[engine] = now + length_ns;
  if (shares(engine)) share(engine, now);
}

Engines::Done Engines::next() const {
  Done first;
  first.time = kIdle;
  for (Id engine = 0; engine < count(); ++engine) {
    if (ends_[engine] > first.time || !busy(engine)) continue;
    if (ends_[engine] < first.time || works_[engine].node < first.node) {
      first = {ends_[engine], works_[engine].node, engine};
    }
  }
  return first;
}

void Engines::end(Id engine, uint64_t now) {
  ends_[engine] = kIdle;
  if (shares(engine)) share(engine, now);
}

double Engines::speed(Id engine) const {
  if (engine >= from_ssd()) {
    const bool in = engine == from_ssd();
    const uint32_t link = works_[engine].link;
    return busy(in ? to_device(link) : to_host(link)) ? beside_host_[in ? 0 : 1] : 1;
  }
  const bool in = engine % kPerDevice == 1;
  const uint32_t link = engine / kPerDevice;
  double result = 1;
  if (ssd_busy(in ? from_ssd() : to_ssd(), link)) result *= beside_ssd_[in ? 0 : 1];
  if (busy(in ? to_host(link) : to_device(link)) || ssd_busy(in ? to_ssd() : from_ssd(), link)) {
    result *= beside_other_[in ? 0 : 1];
  }
  return result;
}

// Only the engines on the link of the one that has changed are concerned.
void Engines::share(Id changed, uint64_t now) {
  const uint32_t link = changed >= from_ssd() ? works_[changed].link : changed / kPerDevice;
  for (const Id engine : {to_device(link), to_host(link), from_ssd(), to_ssd()}) {
    if (!busy(engine)) continue;
    Work& work = works_[engine];
    const double changed_speed = speed(engine);
    if (changed_speed == work.speed) continue;
    work.remaining = std::max(0.0, work.remaining - static_cast<double>(now - work.since) * work.speed);
    work.since = now;
    work.speed = changed_speed;
    ends_[engine] = now + static_cast<uint64_t>(std::ceil(work.remaining / changed_speed));
  }
}

}  // namespace reprise::analyzer
