// Pieces of work that do not touch each other, on as many threads as the machine lets the process have. Pieces are made
// so that results do not depend on that number. Called by the planner and its searches, never within a program.
#pragma once
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace reprise::analyzer {

// For tests: as if there were so many processors; 0: as many as there are.
inline std::atomic<size_t> processors_wished{0};

// Processors that the process may use: those of its affinity, and no more than its container's share.
inline size_t processors_allowed() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  size_t count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<size_t>(CPU_COUNT(&allowed)) : 1;
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (limit >> quota >> period && quota != "max" && period > 0) {
    count = std::min(count, static_cast<size_t>(std::max(1.0, std::stod(quota) / period)));
  }
  return std::max<size_t>(count, 1);
}

inline size_t processors() {
  static const size_t allowed = processors_allowed();
  const size_t wished = processors_wished.load(std::memory_order_relaxed);
  return wished != 0 ? wished : allowed;
}

// `work(i)` for each i below `count`, in any order.
template <typename Work>
void in_parallel(size_t count, const Work& work) {
  if (count == 0) return;
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  try {
    for (size_t left = std::min(count, processors()); left > 1; --left) others.emplace_back(take);
  } catch (const std::system_error&) {  // no more threads: those that there are do it
  }
  take();
  for (std::thread& other : others) other.join();
}

}  // namespace reprise::analyzer
