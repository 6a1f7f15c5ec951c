#include "tools/lab/machines/machines.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "preload/trace/nearest.h"

namespace reprise::tools {
namespace {

constexpr double kGB = 1e9;
constexpr double kTera = 1e12;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Published figures, not measurements: links at what large pinned copies usually reach on them, memory and arithmetic
// as NVIDIA's data sheets have them (16-bit: dense on tensor cores, where there are any). reprise-probe measures the
// machine at hand.
analyzer::Machine h200() {
  analyzer::Machine machine;  // PCIe 5 x16
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 55 * kGB;
  machine.memory_bytes_per_s = 4800 * kGB;
  machine.fp16_flops_per_s = 989.5 * kTera;  // H200 SXM
  machine.fp32_flops_per_s = 67 * kTera;
  return machine;
}

analyzer::Machine a100() {
  analyzer::Machine machine;  // PCIe 4 x16, 40 GB
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 25 * kGB;
  machine.memory_bytes_per_s = 1555 * kGB;
  machine.fp16_flops_per_s = 312 * kTera;  // A100 SXM
  machine.fp32_flops_per_s = 19.5 * kTera;
  return machine;
}

// Eight of them as in a DGX A100 or a p4d.24xlarge: NVLink 3 through NVSwitches, 300 GB/s out of each device (data
// sheet). Two devices behind each PCIe switch share its x16 to the host, as in the DGX; say "devices_per_host_link" in
// a machine file where it is otherwise.
analyzer::Machine a100x8() {
  analyzer::Machine machine = a100();
  machine.devices = 8;
  machine.devices_per_link = 2;
  machine.peer_bytes_per_s = 300 * kGB;
  return machine;
}

// Four cards, each with a link of its own to the host; copies between them go over the same links, for these cards have
// no NVLink. TURNIP does not say how its server is wired.
analyzer::Machine p100x4() {
  analyzer::Machine machine;  // PCIe 3 x16, 16 GB
  machine.devices = 4;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 12 * kGB;
  machine.memory_bytes_per_s = 732 * kGB;
  machine.fp16_flops_per_s = 18.7 * kTera;  // P100 PCIe
  machine.fp32_flops_per_s = 9.3 * kTera;
  return machine;
}

// The system that the G10 paper simulates (Table 2 and the parameters of its artifact's runs): SSD writes at the rate
// of reads, as its artifact has it; no latency of copies; unified memory, so that nothing is mapped by calls.
analyzer::Machine g10() {
  analyzer::Machine machine;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = 15.754 * kGB;
  machine.ssd_read_bytes_per_s = machine.ssd_write_bytes_per_s = 3.2 * kGB;
  machine.ssd_latency_ns = 20'000;
  machine.ssd_bytes = 3'200'000'000'000;  // Samsung's Z-SSD SZ985
  machine.ssd_writes_per_day = 30;
  machine.latency_ns = 0;
  machine.host_bytes = 128 * kGiB;
  machine.memory_bytes_per_s = 1555 * kGB;
  machine.fp16_flops_per_s = 312 * kTera;  // its traces are of an A100
  machine.fp32_flops_per_s = 19.5 * kTera;
  machine.remap_ns_per_chunk = 0;
  return machine;
}

struct BuiltIn {
  const char* name;
  analyzer::Machine (*make)();
};
constexpr BuiltIn kBuiltIn[] = {{"h200", h200}, {"a100", a100}, {"a100x8", a100x8}, {"p100x4", p100x4}, {"g10", g10}};

template <typename Number>
void take(Number& to, const std::optional<double>& from) {
  if (!from) return;
  if constexpr (std::is_integral_v<Number>) {
    to = static_cast<Number>(std::llround(*from));
  } else {
    to = *from;
  }
}

}  // namespace

analyzer::Machine to_planner(const probe::Machine& from) {
  analyzer::Machine machine;
#define MACHINE_NUMBER(key, field, unit, lowest, standard, help) take(machine.field, from.key);
#include "tools/lab/probe/output/machine_rows.h"
  machine.link_assumed = !from.h2d_bytes_per_second || !from.d2h_bytes_per_second;
  return machine;
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const BuiltIn& row : kBuiltIn) names.emplace_back(row.name);
  return names;
}

Result<analyzer::Machine> find_machine(const std::string& name_or_path) {
  for (const BuiltIn& row : kBuiltIn) {
    if (name_or_path != row.name) continue;
    analyzer::Machine machine = row.make();
    machine.name = row.name;
    machine.link_assumed = false;
    return machine;
  }
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_path, ignored)) {
    const std::vector<std::string> names = machine_names();
    return Status(
        StatusCode::invalid_argument,
        fmt::format("--machine {}: no such machine or file{}; there are {}, or a file that reprise-probe wrote",
                    name_or_path, did_you_mean(name_or_path, names), fmt::join(names, ", ")));
  }
  Result<probe::Machine> file = probe::read_machine(name_or_path);
  if (!file.ok()) {
    return Status(file.status().code(), fmt::format("{}: {}", name_or_path, file.status().message()));
  }
  analyzer::Machine machine = to_planner(file.value());
  machine.name = name_or_path;
  return machine;
}

}  // namespace reprise::tools
