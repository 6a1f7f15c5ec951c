// The machine file: the few numbers about a machine that the planner's simulator uses, as measured by the probe or
// written by hand. Sections of the probe fill it, its main writes it, tools/machines reads it for `reprise plan` and
// `simulate`; docs/FORMAT.md documents every key. A number that was not measured is absent, never estimated.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "preload/trace/status.h"
#include "tools/probe/output/report.h"

namespace reprise::probe {

inline constexpr int kMachineVersion = 1;

struct Machine {
  std::string device;
  std::string driver;       // as the driver reports itself
  std::string measured_at;  // UTC, ISO 8601
  bool simulated = false;   // numbers of the simulated device describe no hardware
  uint64_t memory_bytes = 0;
  std::optional<double> h2d_bytes_per_second;  // large pinned copies, one direction alone
  std::optional<double> d2h_bytes_per_second;
  std::optional<double> h2d_together_bytes_per_second;  // while the other direction runs, too
  std::optional<double> d2h_together_bytes_per_second;
  std::optional<double> copy_latency_ns;                 // fixed cost of one copy on an idle link
  std::optional<double> hbm_bytes_per_second;            // read and written, by a copying kernel
  std::optional<double> launch_latency_ns;               // per kernel of a full queue
  std::optional<double> event_wait_ns;                   // per cross-stream event edge
  std::optional<double> compute_slowdown_while_copying;  // time of a bandwidth-bound kernel, both copies on, over alone
  std::optional<double> remap_ns_per_chunk;              // 0: the hardware pages
  std::optional<double> host_bytes;                      // of host memory, for copies
  std::optional<double> ssd_bytes;                       // likewise, of the SSD
  std::optional<double> ssd_read_bytes_per_second;       // behind the same link
  std::optional<double> ssd_write_bytes_per_second;
  std::optional<double> ssd_latency_ns;
  // What the probe does not measure and people may add.
  std::optional<double> fp16_flops_per_second;  // peak in 16-bit formats, for generated workloads
  std::optional<double> fp32_flops_per_second;
  std::optional<double> ssd_drive_writes_per_day;  // that the maker grants for five years
  std::optional<double> devices;
  std::optional<double> devices_per_host_link;  // neighbours that share one and take turns on it
  std::optional<double> peer_bytes_per_second;  // out of a device to others
  std::optional<double> peer_latency_ns;
};

Json to_json(const Machine& machine);
// Refuses another format or version, wrong types, and rates that are not positive.
Result<Machine> machine_from_json(const Json& json);
// Takes from `other` what `machine` does not have yet.
void merge(Machine& machine, const Machine& other);

Status write_machine(const Machine& machine, const std::string& path);
Result<Machine> read_machine(const std::string& path);

}  // namespace reprise::probe
