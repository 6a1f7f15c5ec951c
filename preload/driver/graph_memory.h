// Device memory of graphs with nodes that allocate: the driver keeps it for their launches, at addresses of its own,
// and nobody else can move it. How much there is only the driver knows, which takes it at the first launch, or before,
// and may share it between graphs. Callers: the replay's budget, and the forwarder, so that plans leave room for it.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace reprise {

// What graphs of this process hold of the device now; 0: nothing, or not known.
uint64_t graph_bytes(CUdevice device) noexcept;

class GraphMemory {
 public:
  // A graph with so many nodes that allocate was instantiated.
  void instantiated(uint32_t allocations) noexcept { allocations_.fetch_add(allocations, std::memory_order_relaxed); }
  // Such a node was made by a capture, before its graph is instantiated.
  void captured() noexcept { captured_.store(true, std::memory_order_relaxed); }
  // Has any graph such nodes? Else there is nothing to ask the driver for.
  bool any() const noexcept { return allocations() != 0 || captured_.load(std::memory_order_relaxed); }
  // Asks the driver for what there is now; look_back() for the most that there was, too.
  void look(CUdevice device) noexcept;
  void look_back(CUdevice device) noexcept;

  uint64_t allocations() const noexcept { return allocations_.load(std::memory_order_relaxed); }
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  uint64_t most_bytes() const noexcept { return most_bytes_.load(std::memory_order_relaxed); }

 private:
  void raise_to(uint64_t bytes) noexcept;
  std::atomic<bool> captured_{false};
  std::atomic<uint64_t> allocations_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> most_bytes_{0};
};

}  // namespace reprise
