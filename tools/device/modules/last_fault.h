// The first bad access of a kernel, for repriseSimLastFault. Caller: launch.cpp, on a stream's thread.
#pragma once
#include <cstdint>
#include <string>

namespace reprise::sim {

void keep_fault(uint64_t address, const std::string& kernel) noexcept;

}  // namespace reprise::sim
