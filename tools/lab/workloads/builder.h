// Builds the task graph of a workload, tensor by tensor and kernel by kernel. A kernel takes what the roofline says:
// its arithmetic at the machine's peak or its bytes at the rate of device memory, whichever is longer, and a launch.
// Called by the families beside this file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/machine/machine.h"
#include "preload/trace/status.h"

namespace reprise::tools::workloads {

// Limits of the reader, docs/FORMAT.md.
inline constexpr uint64_t kMostTensorBytes = uint64_t{1} << 46;
inline constexpr uint64_t kMostDuration = uint64_t{3600} * 1'000'000'000;

using Tensor = uint32_t;  // place in Draft::tensors, and its id in the file
using Tensors = std::vector<Tensor>;

struct DraftTensor {
  std::string name;
  uint64_t bytes = 0;
  bool persistent = false;
  uint32_t device = 0;
};

struct DraftKernel {
  std::string name;
  Tensors inputs;
  Tensors outputs;
  uint64_t duration_ns = 0;  // of a transfer between devices: 0, for the reader of the graph knows the link
  uint32_t device = 0;
  bool peer = false;
};

struct Draft {
  std::string model;
  std::string machine;  // whose rates it has
  uint64_t batch = 0;
  uint32_t devices = 1;
  uint64_t parameters = 0;  // of the model, each counted once
  double flops = 0;         // of all kernels
  std::vector<DraftTensor> tensors;
  std::vector<DraftKernel> kernels;
};

// What arithmetic runs in: 16-bit formats on matrix units, or 32-bit floating point.
enum class Precision : uint8_t { fp16, fp32 };

inline uint64_t bytes_of(Precision precision) { return precision == Precision::fp16 ? 2 : 4; }

// What a kernel has to do besides touching its inputs and outputs once each.
struct Work {
  double flops = 0;
  double efficiency = 1;  // of the peak, where a kernel is known to reach less
  double bytes = 0;       // 0: those of its inputs and outputs
};

class Builder {
 public:
  Builder(const std::string& model, const analyzer::Machine& machine, Precision precision, uint32_t devices = 1);

  // The device of what is added from now on.
  void on(uint32_t device) { device_ = device; }
  uint32_t devices() const { return draft_.devices; }
  uint64_t element() const { return bytes_of(precision_); }
  uint64_t bytes(Tensor tensor) const { return draft_.tensors[tensor].bytes; }

  // Parameters of the model, of the workload's precision unless said otherwise. A copy of what another device has is
  // not counted again.
  Tensor weight(const std::string& name, uint64_t count, bool copy = false, uint64_t element_bytes = 0);
  // Memory that outlives the iteration but is no parameter: optimizer state, token ids.
  Tensor state(const std::string& name, uint64_t bytes);
  // Lives from its first kernel to its last.
  Tensor tensor(const std::string& name, uint64_t bytes);

  void kernel(const std::string& name, const Tensors& inputs, const Tensors& outputs, const Work& work = {});
  // A kernel with one output of its own, which has its name.
  Tensor make(const std::string& name, const Tensors& inputs, uint64_t bytes, const Work& work = {});
  // A copy of `tensor` on another device.
  Tensor move(Tensor tensor, uint32_t to);

  Draft take() { return std::move(draft_); }

 private:
  std::string labelled(const std::string& name) const;

  Draft draft_;
  analyzer::Machine machine_;
  Precision precision_;
  uint32_t device_ = 0;
};

// An error names what is larger than a reader of task graphs takes.
Status check_draft(const Draft& draft);

// Form of docs/FORMAT.md. `source` says how it was made.
std::string to_json(const Draft& draft, const std::string& source);

}  // namespace reprise::tools::workloads
