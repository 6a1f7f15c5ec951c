// The name of each simulated device, by which libraries that only run there know it. Callers: the driver, the cuBLAS
// stand-ins.
#pragma once

namespace reprise::sim {

inline constexpr char kDeviceName[] = "Reprise Simulated Device";

}  // namespace reprise::sim
