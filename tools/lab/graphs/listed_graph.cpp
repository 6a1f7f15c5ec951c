#include "tools/lab/graphs/listed_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "preload/trace/signature.h"

namespace reprise::tools {
namespace {

using analyzer::GraphCall;
using analyzer::kNone;

constexpr uint64_t kMostChunks = uint64_t{1} << 30;       // of all tensors together: 2 PiB in chunks of 2 MiB
constexpr uint64_t kMostChunksAlive = uint64_t{1} << 27;  // at once: 256 TiB

class Converter {
 public:
  Converter(const ListedGraph& listed, uint64_t chunk_bytes) : listed_(listed) {
    graph_.chunk_bytes = chunk_bytes;
    graph_.program = listed.model;
    graph_.devices = listed.devices;
    graph_.foreign_count = 1;
  }

  Result<analyzer::TaskGraph> convert() {
    if (Status status = find_uses(); !status.ok()) return status;
    if (Status status = check_sizes(); !status.ok()) return status;
    if (Status status = check_order(); !status.ok()) return status;
    if (Status status = check_devices(); !status.ok()) return status;
    add_persistent();
    for (uint32_t kernel = 0; kernel < listed_.kernels.size(); ++kernel) add_kernel(kernel);
    complete_task_graph(graph_);
    if (graph_.peak_chunks > kMostChunksAlive) {
      return too_large("the tensors that are alive at once", graph_.peak_chunks, kMostChunksAlive);
    }
    return std::move(graph_);
  }

 private:
  struct Uses {
    uint32_t first = kNone;
    uint32_t last = 0;
    uint32_t tensor = kNone;  // index in the graph
  };

  Status find_uses() {
    for (uint32_t k = 0; k < listed_.kernels.size(); ++k) {
      for (const auto* ids : {&listed_.kernels[k].inputs, &listed_.kernels[k].outputs}) {
        for (const uint64_t id : *ids) {
          if (!listed_.tensors.contains(id)) {
            return {StatusCode::corrupt, fmt::format("kernel {} ({}) names tensor {}, which is not among the tensors",
                                                     k, listed_.kernels[k].name, id)};
          }
          Uses& uses = uses_[id];
          if (uses.first == kNone) uses.first = k;
          uses.last = k;
        }
      }
    }
    return {};
  }

  static Status refuse(size_t kernel, const ListedKernel& listed, const std::string& why) {
    return {StatusCode::corrupt, fmt::format("kernel {} ({}) {}", kernel, listed.name, why)};
  }

  // Plans name every chunk: what is too much for any machine would be too much for their tables.
  Status check_sizes() const {
    uint64_t chunks = 0;
    for (const auto& [id, uses] : uses_) {
      chunks += analyzer::divide_up(listed_.tensors.at(id).bytes, graph_.chunk_bytes);
    }
    return chunks > kMostChunks ? too_large("all tensors together", chunks, kMostChunks) : Status{};
  }
  Status too_large(const char* what, uint64_t chunks, uint64_t most) const {
    return {StatusCode::corrupt,
            fmt::format("{} take {} chunks of {} bytes; at most {} can be planned; are these sizes bytes?", what,
                        chunks, graph_.chunk_bytes, most)};
  }

  // Kernels run in the order of the list. One that reads what only a later one makes closes a cycle.
  Status check_order() const {
    std::unordered_map<uint64_t, uint32_t> early;  // tensor -> first kernel that reads it before any has written it
    std::unordered_set<uint64_t> written;
    for (uint32_t k = 0; k < listed_.kernels.size(); ++k) {
      for (const uint64_t id : listed_.kernels[k].inputs) {
        if (!listed_.tensors.at(id).persistent && !written.contains(id)) early.try_emplace(id, k);
      }
      for (const uint64_t id : listed_.kernels[k].outputs) {
        const auto read = early.find(id);
        if (!written.insert(id).second || read == early.end() || read->second == k) continue;
        return refuse(read->second, listed_.kernels[read->second],
                      fmt::format("reads tensor {} before kernel {} ({}) writes it: a cycle, since kernels run in the "
                                  "order of the list; put them in order, or make the tensor persistent",
                                  id, k, listed_.kernels[k].name));
      }
    }
    return {};
  }

  Status check_devices() const {
    const auto missing = [&](uint32_t device) {
      return fmt::format("is on device {}, and the graph has {}; set \"devices\"", device, listed_.devices);
    };
    for (const auto& [id, tensor] : listed_.tensors) {
      if (tensor.device >= listed_.devices) {
        return {StatusCode::corrupt, fmt::format("tensor {} {}", id, missing(tensor.device))};
      }
    }
    for (size_t k = 0; k < listed_.kernels.size(); ++k) {
      const ListedKernel& kernel = listed_.kernels[k];
      if (kernel.device >= listed_.devices) return refuse(k, kernel, missing(kernel.device));
      if (Status status = kernel.peer ? check_peer(k, kernel) : check_kernel(k, kernel); !status.ok()) return status;
    }
    return {};
  }

  Status check_peer(size_t place, const ListedKernel& kernel) const {
    if (kernel.inputs.size() != 1 || kernel.outputs.size() != 1 || kernel.workspace_bytes != 0) {
      return refuse(place, kernel, "is a peer copy: it needs one input, one output and no workspace");
    }
    const ListedTensor& from = listed_.tensors.at(kernel.inputs[0]);
    const ListedTensor& to = listed_.tensors.at(kernel.outputs[0]);
    if (from.device == to.device) return refuse(place, kernel, "is a peer copy between tensors of one device");
    if (from.bytes > to.bytes) return refuse(place, kernel, "copies into a smaller tensor");
    return {};
  }

  Status check_kernel(size_t place, const ListedKernel& kernel) const {
    for (const auto* ids : {&kernel.inputs, &kernel.outputs}) {
      for (const uint64_t id : *ids) {
        const uint32_t device = listed_.tensors.at(id).device;
        if (device == kernel.device) continue;
        return refuse(place, kernel,
                      fmt::format("runs on device {} and uses tensor {}, which is on device {}; copy it with "
                                  "a kernel of kind \"peer\"",
                                  kernel.device, id, device));
      }
    }
    return {};
  }

  uint32_t add_tensor(uint64_t id, uint64_t bytes, uint32_t device) {
    plan::Tensor tensor;
    tensor.size = bytes;
    tensor.device = device;
    tensor.recorded_allocation = id;
    tensor.chunk_count = analyzer::chunks_of(bytes, graph_.chunk_bytes);
    graph_.tensors.push_back(tensor);
    return static_cast<uint32_t>(graph_.tensors.size() - 1);
  }

  void add_persistent() {
    std::vector<uint64_t> ids;
    for (const auto& [id, tensor] : listed_.tensors) {
      if (tensor.persistent) ids.push_back(id);
      most_ = std::max(most_, id);
    }
    std::sort(ids.begin(), ids.end());
    for (const uint64_t id : ids) {
      uses_[id].tensor = add_tensor(id, listed_.tensors.at(id).bytes, listed_.tensors.at(id).device);
    }
  }

  void add_kernel(uint32_t index) {
    const ListedKernel& kernel = listed_.kernels[index];
    std::vector<uint32_t> ending;
    GraphCall op;
    for (const bool writes : {false, true}) {
      for (const uint64_t id : writes ? kernel.outputs : kernel.inputs) touch(index, id, writes, op.call, ending);
    }
    if (kernel.workspace_bytes > 0) {
      const uint32_t workspace = allocate(++most_, kernel.workspace_bytes, kernel.device);
      add_access(op.call, workspace, trace::kAccessWrite);
      ending.push_back(workspace);
    }
    op.call.kind = plan::CallKind::op;
    op.call.op = kernel.peer ? trace::OpKind::copy_peer : trace::OpKind::launch;
    op.call.device = kernel.peer ? listed_.tensors.at(kernel.inputs[0]).device : kernel.device;
    op.call.name = kernel.name;
    op.call.duration_ns = kernel.duration_ns;
    op.call.pure = kernel.pure;
    const uint32_t none[3] = {};
    op.call.signature = trace::op_signature(op.call.op, trace::hash_bytes(kernel.name.data(), kernel.name.size()), none,
                                            none, 0, 0, static_cast<uint32_t>(op.call.accesses.size()));
    add_call(std::move(op));
    for (const uint32_t tensor : ending) release(tensor);
  }

  void touch(uint32_t index, uint64_t id, bool writes, plan::Call& call, std::vector<uint32_t>& ending) {
    Uses& uses = uses_.at(id);
    if (uses.tensor == kNone) uses.tensor = allocate(id, listed_.tensors.at(id).bytes, listed_.tensors.at(id).device);
    const bool ends = !listed_.tensors.at(id).persistent && uses.last == index;
    if (ends && std::find(ending.begin(), ending.end(), uses.tensor) == ending.end()) ending.push_back(uses.tensor);
    add_access(call, uses.tensor, writes ? trace::kAccessWrite : trace::kAccessRead);
  }

  // A tensor that is read and written is one access.
  static void add_access(plan::Call& call, uint32_t tensor, uint32_t mode) {
    for (plan::OpAccess& access : call.accesses) {
      if (access.tensor != tensor) continue;
      access.mode |= mode;
      return;
    }
    call.accesses.push_back({tensor, mode, 0, 0, trace::kNoParameter});
  }

  uint32_t allocate(uint64_t id, uint64_t bytes, uint32_t device) {
    const uint32_t tensor = add_tensor(id, bytes, device);
    graph_.tensors[tensor].allocate_call = static_cast<uint32_t>(graph_.calls.size());
    add_memory_call(plan::CallKind::allocate, tensor);
    return tensor;
  }
  void release(uint32_t tensor) {
    graph_.tensors[tensor].free_call = static_cast<uint32_t>(graph_.calls.size());
    add_memory_call(plan::CallKind::free, tensor);
  }

  void add_memory_call(plan::CallKind kind, uint32_t tensor) {
    const uint64_t bytes = graph_.tensors[tensor].size;
    GraphCall entry;
    entry.call.kind = kind;
    entry.call.tensor = tensor;
    entry.call.signature = kind == plan::CallKind::allocate ? trace::allocate_signature(entry.call.origin, bytes)
                                                            : trace::free_signature(entry.call.origin, bytes);
    add_call(std::move(entry));
  }

  void add_call(GraphCall entry) {
    graph_.iteration_hash = trace::hash_mix(graph_.iteration_hash, entry.call.signature);
    graph_.calls.push_back(std::move(entry));
  }

  const ListedGraph& listed_;
  analyzer::TaskGraph graph_;
  std::unordered_map<uint64_t, Uses> uses_;
  uint64_t most_ = 0;  // highest id so far: workspaces come behind
};

}  // namespace

Result<analyzer::TaskGraph> to_task_graph(const ListedGraph& listed, uint64_t chunk_bytes) {
  return Converter(listed, chunk_bytes).convert();
}

}  // namespace reprise::tools
