// Programs that run under the counting shim, and what it says about each: launches seen against kernels that CUPTI
// recorded, parameter information, pointers. Callers: sections 1 and 6.
#pragma once
#include <string>
#include <vector>

#include "tools/probe/sections/section.h"

namespace reprise::probe {

struct CountedProgram {
  std::string name;
  std::vector<std::string> arguments;
  std::string missing;  // why it cannot run here; empty: it can
  bool on_simulated_device = false;
};

// The probe itself, the runtime programs, the libraries' and the Python scripts, in this order.
std::vector<CountedProgram> counted_programs(const SectionContext& context);

// Launches by kernel name, as the shim saw them and as CUPTI recorded them; which names and how many differ. A
// difference in the totals is reported as what it is: launches that the shim missed, or records that CUPTI lacks.
struct Parity {
  uint64_t seen = 0;              // kernels launched through the shim's entry points, graphs' kernel nodes included
  uint64_t recorded = 0;          // CUPTI's kernel records
  Json missed = Json::object();   // name: how many more CUPTI recorded than the shim saw
  Json surplus = Json::object();  // name: how many more the shim saw than CUPTI recorded
};
Parity compare(const Json& shim_counts);

Status report_parity(SectionContext& context);
Status report_library_parameters(SectionContext& context);

}  // namespace reprise::probe
