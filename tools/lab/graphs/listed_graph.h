// A TaskGraph as its JSON form lists it, and the way from there to the analyzer's. Used by json_graph.cpp only.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/taskgraph/graph.h"
#include "preload/trace/status.h"

namespace reprise::tools {

struct ListedTensor {
  uint64_t bytes = 0;
  bool persistent = false;
  uint32_t device = 0;
};

struct ListedKernel {
  std::string name;
  uint64_t duration_ns = 0;
  uint64_t workspace_bytes = 0;
  uint32_t device = 0;
  bool peer = false;             // copies its input to another device
  std::vector<uint64_t> inputs;  // tensor ids
  std::vector<uint64_t> outputs;
  bool pure = false;  // what it writes depends on what it reads alone
};

struct ListedGraph {
  std::string model;
  uint32_t devices = 1;
  std::unordered_map<uint64_t, ListedTensor> tensors;  // by id
  std::vector<ListedKernel> kernels;
};

// Transient tensors and workspaces get an allocation just before their first kernel and a free just after their last.
// Errors: a kernel that names a tensor which is not listed; devices that do not fit together.
Result<analyzer::TaskGraph> to_task_graph(const ListedGraph& listed, uint64_t chunk_bytes);

}  // namespace reprise::tools
