// What must hold for every generated workload, whatever it is. Used by the workload tests.
#pragma once

#include "tests/support/test.h"
#include "tools/lab/workloads/registry.h"

namespace reprise::tools::workloads::test {

inline Draft build(const char* name, const std::map<std::string, uint64_t>& changes = {},
                   const analyzer::Machine& machine = {}) {
  const Row* row = find_workload(name);
  if (row == nullptr) throw std::runtime_error(name);
  Settings settings = presets(*row, machine);
  for (const auto& [key, value] : changes) settings.values.at(key) = value;
  Result<Draft> draft = row->build(settings);
  EXPECT_TRUE(draft.ok()) << draft.status().message();
  return draft.ok() ? std::move(draft.value()) : Draft{};
}

inline void expect_transfer(const Draft& draft, const DraftKernel& kernel) {
  ASSERT_TRUE(kernel.inputs.size() == 1 && kernel.outputs.size() == 1) << kernel.name;
  const DraftTensor& from = draft.tensors[kernel.inputs.front()];
  const DraftTensor& to = draft.tensors[kernel.outputs.front()];
  EXPECT_NE(from.device, to.device) << kernel.name;
  EXPECT_EQ(from.bytes, to.bytes) << kernel.name;
}

// Transient tensors are written before they are read, and all but `unread` are read; a kernel touches memory of
// its own device only, a transfer that of two; every tensor is used.
inline void expect_sound(const Draft& draft, size_t unread) {
  std::vector<bool> written(draft.tensors.size());
  std::vector<bool> read(draft.tensors.size());
  for (const DraftKernel& kernel : draft.kernels) {
    for (const Tensor input : kernel.inputs) {
      const DraftTensor& tensor = draft.tensors.at(input);
      EXPECT_TRUE(tensor.persistent || written[input]) << kernel.name << " reads " << tensor.name << " too early";
      EXPECT_TRUE(kernel.peer || tensor.device == kernel.device) << kernel.name << " reads " << tensor.name;
      read[input] = true;
    }
    for (const Tensor output : kernel.outputs) {
      EXPECT_EQ(draft.tensors.at(output).device, kernel.device) << kernel.name;
      written[output] = true;
    }
    if (kernel.peer) expect_transfer(draft, kernel);
    EXPECT_FALSE(kernel.outputs.empty()) << kernel.name;
    EXPECT_EQ(kernel.duration_ns == 0, kernel.peer) << kernel.name;
  }
  size_t results = 0;
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const DraftTensor& tensor = draft.tensors[i];
    EXPECT_GT(tensor.bytes, 0u) << tensor.name;
    EXPECT_LT(tensor.device, draft.devices) << tensor.name;
    EXPECT_TRUE(read[i] || written[i]) << tensor.name << " is never used";
    if (!tensor.persistent && !read[i]) ++results;
  }
  EXPECT_EQ(results, unread);
}

inline const DraftKernel& kernel_named(const Draft& draft, const std::string& name) {
  for (const DraftKernel& kernel : draft.kernels) {
    if (kernel.name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

inline uint64_t persistent_bytes(const Draft& draft) {
  uint64_t bytes = 0;
  for (const DraftTensor& tensor : draft.tensors) bytes += tensor.persistent ? tensor.bytes : 0;
  return bytes;
}

inline uint64_t peer_bytes(const Draft& draft) {
  uint64_t bytes = 0;
  for (const DraftKernel& kernel : draft.kernels) bytes += kernel.peer ? draft.tensors[kernel.inputs[0]].bytes : 0;
  return bytes;
}

}  // namespace reprise::tools::workloads::test
