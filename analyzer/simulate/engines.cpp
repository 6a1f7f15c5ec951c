#include "analyzer/simulate/engines.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace reprise::analyzer {
namespace {

double together(double both, double alone) { return both > 0 ? std::min(both / alone, 1.0) : 1; }

}  // namespace

Engines::Engines(const Machine& machine) {
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

bool Engines::idle() const {
  return std::none_of(work_.begin(), work_.end(), [](const Work& work) { return work.busy; });
}

void Engines::begin(Engine engine, uint32_t node, uint64_t length_ns, uint64_t now) {
  work_[engine] = {true, node, now, static_cast<double>(length_ns), 1, now + length_ns};
  if (engine != kCompute) share(now);
}

Engines::Done Engines::next() const {
  Done first;
  for (uint8_t i = 0; i < kEngineCount; ++i) {
    const Work& work = work_[i];
    if (!work.busy) continue;
    const bool earlier = std::tie(work.end, work.node) < std::tie(first.time, first.node);
    if (first.engine == kNoEngine || earlier) first = {work.end, work.node, static_cast<Engine>(i)};
  }
  return first;
}

void Engines::end(Engine engine, uint64_t now) {
  work_[engine].busy = false;
  if (engine != kCompute) share(now);
}

double Engines::speed(Engine engine) const {
  if (engine == kFromSsd || engine == kToSsd) {
    return work_[engine == kFromSsd ? kToDevice : kToHost].busy ? beside_host_[engine == kFromSsd ? 0 : 1] : 1;
  }
  const bool in = engine == kToDevice;
  double result = 1;
  if (work_[in ? kFromSsd : kToSsd].busy) result *= beside_ssd_[in ? 0 : 1];
  if (work_[in ? kToHost : kToDevice].busy || work_[in ? kToSsd : kFromSsd].busy) result *= beside_other_[in ? 0 : 1];
  return result;
}

void Engines::share(uint64_t now) {
  for (const Engine engine : {kToDevice, kToHost, kFromSsd, kToSsd}) {
    Work& work = work_[engine];
    const double changed = speed(engine);
    if (!work.busy || changed == work.speed) continue;
    work.remaining = std::max(0.0, work.remaining - static_cast<double>(now - work.since) * work.speed);
    work.since = now;
    work.speed = changed;
    work.end = now + static_cast<uint64_t>(std::ceil(work.remaining / changed));
  }
}

}  // namespace reprise::analyzer
