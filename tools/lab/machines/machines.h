// Machines by name or from machine files. Callers: `reprise plan`, `simulate` and `workload`, bench/.
#pragma once
#include <string>
#include <vector>

#include "analyzer/machine/machine.h"
#include "preload/trace/status.h"
#include "tools/lab/probe/output/machine_file.h"

namespace reprise::tools {

// A built-in name (h200, a100, a100x8, p100x4, g10) or the path of a machine file. Errors name the file, or the names
// that exist.
Result<analyzer::Machine> find_machine(const std::string& name_or_path);

// The built-in ones.
std::vector<std::string> machine_names();

// What choosing a machine does not do: how much faster or slower its kernels are does not follow from rates alone.
inline constexpr char kKernelTimesStay[] =
    "--machine changes memory and links: kernels take as long as they were recorded, or as the graph says";

// Numbers that the file does not have keep the planner's defaults.
analyzer::Machine to_planner(const probe::Machine& machine);

}  // namespace reprise::tools
