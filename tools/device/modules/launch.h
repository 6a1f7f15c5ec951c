// Kernel launches as operations. Callers: the launch functions, graph kernel nodes.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/device/base/operation.h"
#include "tools/device/engines/clock.h"
#include "tools/device/memory/extents.h"
#include "tools/device/modules/module.h"
#include "tools/device/twins/executor.h"

namespace reprise::sim {

struct LaunchShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  bool cooperative;
};

// The driver's checks of a launch; its codes.
CUresult check_launch(const Function& function, const LaunchShape& shape);

// Parameter bytes, copied at the call: each parameter at its offset, the first at 0.
class ParameterBlob {
 public:
  // From exactly one of the two forms of cuLaunchKernel.
  CUresult read(const Function& function, void** parameters, void** extra);
  const uint8_t* data() const { return large_.empty() ? small_ : large_.data(); }
  uint32_t bytes() const { return bytes_; }

 private:
  uint8_t* make_room(uint32_t bytes);
  CUresult read_buffer(const Function& function, void** extra);
  uint32_t bytes_ = 0;
  alignas(16) uint8_t small_[256];
  std::vector<uint8_t> large_;
};

class KernelOperation final : public Operation {
 public:
  KernelOperation(std::shared_ptr<const Function> its_function, const LaunchShape& its_shape, ParameterBlob its_blob);
  OperationKind kind() const override { return OperationKind::kernel; }
  void execute(const Execution& execution) const override;

  const std::shared_ptr<const Function> function;
  const LaunchShape shape;
  const ParameterBlob blob;

 private:
  uint64_t operand_bytes() const;
  // What the parameters name as of the program's call: an address may mean something else by the time the kernel runs.
  std::vector<AddressWord> addresses_;
  std::vector<Extent> extents_;  // keeps what they refer to
  Duration duration_;
};

}  // namespace reprise::sim
