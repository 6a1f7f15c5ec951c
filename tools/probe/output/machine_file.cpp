#include "tools/probe/output/machine_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tools/probe/output/output.h"

namespace reprise::probe {
namespace {

struct Field {
  const char* key;
  std::optional<double> Machine::*value;
  bool may_be_zero = false;
};
constexpr std::array<Field, 22> kFields = {
    {{"h2d_bytes_per_second", &Machine::h2d_bytes_per_second},
     {"d2h_bytes_per_second", &Machine::d2h_bytes_per_second},
     {"h2d_together_bytes_per_second", &Machine::h2d_together_bytes_per_second},
     {"d2h_together_bytes_per_second", &Machine::d2h_together_bytes_per_second},
     {"copy_latency_ns", &Machine::copy_latency_ns},
     {"hbm_bytes_per_second", &Machine::hbm_bytes_per_second},
     {"launch_latency_ns", &Machine::launch_latency_ns, true},
     {"event_wait_ns", &Machine::event_wait_ns},
     {"compute_slowdown_while_copying", &Machine::compute_slowdown_while_copying},
     {"fp16_flops_per_second", &Machine::fp16_flops_per_second},
     {"fp32_flops_per_second", &Machine::fp32_flops_per_second},
     {"remap_ns_per_chunk", &Machine::remap_ns_per_chunk, true},
     {"host_bytes", &Machine::host_bytes},
     {"ssd_bytes", &Machine::ssd_bytes},
     {"ssd_read_bytes_per_second", &Machine::ssd_read_bytes_per_second},
     {"ssd_write_bytes_per_second", &Machine::ssd_write_bytes_per_second},
     {"ssd_drive_writes_per_day", &Machine::ssd_drive_writes_per_day},
     {"ssd_latency_ns", &Machine::ssd_latency_ns, true},
     {"devices", &Machine::devices},
     {"devices_per_host_link", &Machine::devices_per_host_link},
     {"peer_bytes_per_second", &Machine::peer_bytes_per_second},
     {"peer_latency_ns", &Machine::peer_latency_ns, true}}};

Status corrupt(const std::string& why) { return {StatusCode::corrupt, "not a machine file: " + why}; }

}  // namespace

Json to_json(const Machine& machine) {
  Json json = {{"format", "reprise-machine"},
               {"version", kMachineVersion},
               {"device", machine.device},
               {"driver", machine.driver},
               {"measured_at", machine.measured_at},
               {"simulated", machine.simulated},
               {"memory_bytes", machine.memory_bytes}};
  for (const Field& field : kFields) {
    if (const auto& value = machine.*field.value) json[field.key] = *value;
  }
  return json;
}

Result<Machine> machine_from_json(const Json& json) {
  if (!json.is_object() || json.value("format", Json()) != "reprise-machine")
    return corrupt("no \"format\": \"reprise-machine\"");
  try {
    if (json.at("version").get<int>() != kMachineVersion) {
      return Status(StatusCode::unsupported, fmt::format("machine file of version {}, this build knows {}",
                                                         json.at("version").dump(), kMachineVersion));
    }
    Machine machine;
    machine.device = json.at("device").get<std::string>();
    // Files written by hand may leave out where the numbers come from.
    machine.driver = json.value("driver", "");
    machine.measured_at = json.value("measured_at", "");
    machine.simulated = json.value("simulated", false);
    machine.memory_bytes = json.at("memory_bytes").get<uint64_t>();
    for (const Field& field : kFields) {
      if (!json.contains(field.key)) continue;
      const auto value = json.at(field.key).get<double>();
      const bool good = std::isfinite(value) && value < 0x1p62 && (field.may_be_zero ? value >= 0 : value > 0);
      if (!good)
        return corrupt(fmt::format("{} is not a {} number", field.key, field.may_be_zero ? "valid" : "positive"));
      machine.*field.value = value;
    }
    return machine;
  } catch (const nlohmann::json::exception& error) {
    return corrupt(error.what());
  }
}

void merge(Machine& machine, const Machine& other) {
  for (const Field& field : kFields) {
    if (!(machine.*field.value)) machine.*field.value = other.*field.value;
  }
}

Status write_machine(const Machine& machine, const std::string& path) {
  return write_text(path, to_json(machine).dump(2) + "\n");
}

Result<Machine> read_machine(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::not_found, "cannot open the machine file " + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return corrupt(path + " is not JSON");
  return machine_from_json(json);
}

}  // namespace reprise::probe
