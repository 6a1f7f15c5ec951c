// The checks of `reprise doctor`: each looks at one thing that Reprise needs or likes to have. Callers:
// commands/doctor.cpp and tests.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reprise::tools {

enum class Finding : uint8_t {
  good,
  note,     // worth knowing; everything works
  missing,  // Reprise cannot work without it
};

struct Check {
  std::string name;
  Finding finding = Finding::good;
  std::string value;
  std::string advice;  // what to do; empty when good
};

// Driver, devices, virtual memory management, by asking the driver that the shim would take. `driver` (a path)
// overrides the search. Uses the device for a moment: one chunk is created, mapped twice, written and released.
void check_device(const std::string& driver, std::vector<Check>& checks);
// Says that there is no driver, before a program starts that may well do without, or find one where we do not look.
void say_without_driver(bool simulated);
// Why no CUDA call of a program was seen, as far as this machine can tell: none was watched for, there is no driver,
// the driver has no device, else the program made none.
std::string why_no_calls(bool simulated);
// Memory of this machine and its limits for this process; 0: no limit.
struct HostState {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
  uint64_t group_bytes = 0;    // of the control group
  uint64_t locked_bytes = 0;   // RLIMIT_MEMLOCK
  uint64_t address_bytes = 0;  // RLIMIT_AS
};
HostState host_state();
void check_host(const HostState& state, std::vector<Check>& checks);
// What costs speed or words alone: libraries for call stacks, NUMA nodes, what a container forbids.
void check_around(std::vector<Check>& checks);
// CUDA toolkit, CUPTI, the installed libraries.
void check_software(bool simulated, std::vector<Check>& checks);

// 0 when nothing is missing, else 1.
int doctor_exit_code(const std::vector<Check>& checks);
nlohmann::ordered_json doctor_json(const std::vector<Check>& checks);
std::string doctor_text(const std::vector<Check>& checks, bool coloured = false);

}  // namespace reprise::tools
