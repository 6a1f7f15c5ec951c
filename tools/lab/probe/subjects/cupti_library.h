// Where CUDA's libraries are on machines that have no whole toolkit: in the packages of python3. CUPTI among them,
// unless the toolkit has it. Callers: sections 1, 6, 7 and 8.
#pragma once
#include <string>
#include <vector>

namespace reprise::probe {

// A path or a name that dlopen takes; empty: none found. REPRISE_CUPTI, when set, is the answer.
std::string find_cupti(const std::string& python);
// Folders with shared libraries of the packages (nvidia/cu13/lib, nvidia/cudnn/lib, ...); none without python3.
std::vector<std::string> package_folders(const std::string& python);
// The search path of a program that opens CUDA's libraries: what the user set, the toolkit, the packages.
std::string library_path(const std::string& python);

}  // namespace reprise::probe
