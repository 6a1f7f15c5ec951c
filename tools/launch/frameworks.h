// What frameworks need to be started with: settings of their allocators, which otherwise take few large blocks from the
// driver and hide the tensors inside, and on the simulated device our libraries before NVIDIA's, which frameworks bring
// along and find first. What the user has set is kept. Caller: environment.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::tools {

// The names that --framework takes: auto stands for all there are, none for a program without one.
inline constexpr const char* kFrameworks[] = {"auto", "torch", "jax", "none"};

// A variable of the environment; empty: not set.
std::string inherited(const char* name);

std::vector<std::pair<std::string, std::string>> allocator_variables(const std::string& framework);

// Who asks PyTorch for the backend that shows tensors, as the preloaded library is told (REPRISE_TORCH_BACKEND): the
// launcher, or the user by the environment. Empty: none does.
std::string torch_backend(const std::string& framework);

// Libraries of the simulated device that stand before NVIDIA's; those that are not installed are left out.
std::vector<std::string> simulated_libraries(const std::string& framework, const std::string& folder);
// Not ok when a framework was named and one is missing.
Status check_simulated_libraries(const std::string& framework, const std::string& folder);

// One line for each of the user's settings that hides tensors, cannot work on the simulated device, or has no effect
// behind `ours` in LD_PRELOAD.
std::vector<std::string> conflicts(const std::string& framework, const std::vector<std::string>& ours, bool simulated);

}  // namespace reprise::tools
