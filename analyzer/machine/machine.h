// What the planner assumes about the hardware: rates, latencies, capacities. From a machine file or the trace where
// they say so, else defaults of a PCIe 4 x16 card. Callers: planner, policies, simulation, bounds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

struct Machine {
  std::string name;          // as the user has named it; empty: a recording's, or unknown
  bool link_assumed = true;  // what copies take, both ways, is neither measured nor given
  double h2d_bytes_per_s = 24e9;
  double d2h_bytes_per_s = 24e9;
  double h2d_together_bytes_per_s = 0;  // while the other direction is busy, too; 0: as alone
  double d2h_together_bytes_per_s = 0;
  uint64_t latency_ns = 10'000;     // of one copy
  double ssd_read_bytes_per_s = 0;  // of an SSD behind the same link, whose rate it takes a part of; 0: none
  double ssd_write_bytes_per_s = 0;
  uint64_t ssd_latency_ns = 20'000;      // of one transfer, on top of latency_ns
  uint64_t host_bytes = 0;               // that copies may take; 0: no limit
  uint64_t ssd_bytes = 0;                // likewise
  double ssd_writes_per_day = 1;         // of all its bytes, that its maker grants for five years
  double digest_bytes_per_s = 0;         // of digests of what is on the device; 0: the rate of its memory
  double memory_bytes_per_s = 1e12;      // of device memory, for ops whose duration was not recorded
  double fp16_flops_per_s = 100e12;      // of products in 16-bit formats: what generated workloads assume
  double fp32_flops_per_s = 20e12;       // likewise, in 32-bit floating point
  uint64_t launch_ns = 3'000;            // least duration of such an op
  uint64_t remap_ns_per_chunk = 80'000;  // unmap, map and set access of one chunk; 0: the hardware pages

  // Several devices. Neighbours that share a link to the host take turns on it, each way.
  uint32_t devices = 1;           // that it has; a graph may use fewer
  uint32_t devices_per_link = 1;  // neighbours that share a link to the host
  double peer_bytes_per_s = 0;    // out of a device to others; 0: such copies take the link to the host
  uint64_t peer_latency_ns = 10'000;

  bool has_ssd() const { return ssd_read_bytes_per_s > 0 && ssd_write_bytes_per_s > 0; }
};

// The trace's info keys of preload/trace/measured_keys.def win over the defaults. A value that is no positive number is
// ignored. The link counts as measured where both directions are.
Machine machine_of(const trace::Trace& trace);

// Years until an SSD has taken the writes that its maker grants, where every iteration writes `written_bytes` and the
// program runs day and night. nullopt: nothing is written, or the SSD's size is not known.
std::optional<double> ssd_years(const Machine& machine, uint64_t written_bytes, uint64_t iteration_ns);

// Time of a copy of `bytes` over a link.
uint64_t copy_ns(uint64_t bytes, double bytes_per_s, uint64_t latency_ns);
// Of a hash of `bytes` of device memory: what a clean offload takes where the bytes are as expected.
inline uint64_t hash_ns(uint64_t bytes, const Machine& machine) {
  const double rate = machine.digest_bytes_per_s > 0 ? machine.digest_bytes_per_s : machine.memory_bytes_per_s;
  return copy_ns(bytes, rate, machine.launch_ns);
}

}  // namespace reprise::analyzer
