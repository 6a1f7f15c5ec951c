#include "tools/device/graphs/graph.h"

#include <algorithm>
#include <set>

#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/memory.h"
#include "tools/device/streams/context.h"
#include "tools/device/streams/operations.h"

namespace reprise::sim {

GraphTable& graphs() {
  static GraphTable& table = *new GraphTable;
  return table;
}
GraphNodeTable& graph_nodes() {
  static GraphNodeTable& table = *new GraphNodeTable;
  return table;
}
GraphExecTable& graph_execs() {
  static GraphExecTable& table = *new GraphExecTable;
  return table;
}
UserObjectTable& user_objects() {
  static UserObjectTable& table = *new UserObjectTable;
  return table;
}

GraphMemory::~GraphMemory() {
  if (const auto range = memory_map().find(address)) free_device_memory(*range);
  if (device != nullptr) device->graph_memory.used.add(-static_cast<int64_t>(parameters.bytesize));
}

CUgraphNodeType node_type(const Operation& operation) {
  switch (operation.kind()) {
    case OperationKind::kernel:
      return CU_GRAPH_NODE_TYPE_KERNEL;
    case OperationKind::copy:
      return CU_GRAPH_NODE_TYPE_MEMCPY;
    case OperationKind::memset:
      return CU_GRAPH_NODE_TYPE_MEMSET;
    case OperationKind::host:
      return CU_GRAPH_NODE_TYPE_HOST;
    default:
      return CU_GRAPH_NODE_TYPE_EMPTY;
  }
}

std::shared_ptr<Graph> make_graph() {
  auto graph = std::make_shared<Graph>();
  graph->handle = graphs().add(graph);
  return graph;
}

void release_user_object(CUuserObject handle, unsigned count) {
  const std::shared_ptr<UserObject> object = user_objects().share(handle);
  if (object == nullptr) return;
  object->references -= std::min(count, object->references);
  if (object->references > 0) return;
  user_objects().remove(handle);
  object->destroy(object->object);
}

Graph::~Graph() {
  for (const auto& node : nodes_) graph_nodes().remove(node->handle);
  for (const auto& node : nodes_) {
    if (node->child != nullptr) graphs().remove(node->child->handle);
  }
  for (const auto& [object, count] : user_objects) release_user_object(object, count);
}

GraphNode* Graph::add(CUgraphNodeType type, OperationPointer operation, const std::vector<GraphNode*>& dependencies) {
  auto node = std::make_shared<GraphNode>();
  node->graph = this;
  node->type = type;
  node->operation = operation == nullptr ? empty_operation() : std::move(operation);
  node->dependencies = dependencies;
  node->handle = graph_nodes().add(node);
  nodes_.push_back(node);
  return node.get();
}

void Graph::remove(GraphNode* node) {
  graph_nodes().remove(node->handle);
  for (const auto& other : nodes_) std::erase(other->dependencies, node);
  std::erase_if(nodes_, [&](const auto& other) { return other.get() == node; });
}

std::vector<GraphNode*> Graph::order() const {
  std::map<const GraphNode*, size_t> open;
  std::map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes_) {
    open[node.get()] = node->dependencies.size();
    for (GraphNode* dependency : node->dependencies) dependents[dependency].push_back(node.get());
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (GraphNode* next : dependents[order[i]]) {
      if (--open[next] == 0) order.push_back(next);
    }
  }
  if (order.size() != nodes_.size()) order.clear();
  return order;
}

std::shared_ptr<Graph> Graph::clone() const {
  std::shared_ptr<Graph> copy = make_graph();
  copy->original = handle;
  std::map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : nodes_) {
    GraphNode* twin = copy->add(node->type, node->operation, {});
    twin->original = node->handle;
    if (node->child != nullptr) twin->child = node->child->clone();
    twin->event = node->event;
    twin->memory = node->memory;
    twin->freed = node->freed;
    twin->enabled = node->enabled;
    twin->attributes = node->attributes;
    copies[node.get()] = twin;
  }
  for (const auto& node : nodes_) {
    for (const GraphNode* dependency : node->dependencies) {
      copies[node.get()]->dependencies.push_back(copies[dependency]);
    }
  }
  copy->user_objects = user_objects;
  for (const auto& [object, count] : user_objects) {
    if (const auto shared = reprise::sim::user_objects().share(object)) shared->references += count;
  }
  return copy;
}

GraphNode* Graph::find_clone_of(const GraphNode& original_node) const {
  for (const auto& node : nodes_) {
    if (node->original == original_node.handle || node->handle == original_node.handle) return node.get();
  }
  // A node of a clone, updated by way of its source: the two share an original.
  for (const auto& node : nodes_) {
    if (original_node.original != nullptr && node->original == original_node.original) return node.get();
  }
  return nullptr;
}

// What a launch does, in order, with child graphs laid out flat.
struct GraphExec::Plan {
  std::vector<OperationPointer> operations;
  std::vector<CUevent> waits;
  std::vector<CUevent> records;
  std::vector<std::shared_ptr<GraphMemory>> allocates;
  std::vector<CUdeviceptr> frees;

  bool append(const Graph& from) {
    const std::vector<GraphNode*> order = from.order();
    if (order.size() != from.nodes().size()) return false;
    for (const GraphNode* node : order) {
      if (!node->enabled) continue;
      if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        if (!append(*node->child)) return false;
      } else if (node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
        waits.push_back(node->event);
      } else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        records.push_back(node->event);
      } else if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        allocates.push_back(node->memory);
      } else if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        frees.push_back(node->freed);
      } else if (node->operation->kind() != OperationKind::empty) {
        operations.push_back(node->operation);
      }
    }
    return true;
  }

  // What a launch allocates, and does not free itself, stays until somebody frees it, the graph's end or not; unless
  // launches free it first, there is none before that. *freed: what the launch frees, for as long as it runs.
  bool take_memory(bool free_first, std::vector<std::shared_ptr<void>>* freed) const {
    const auto is_allocated = [](const auto& memory) { return memory->allocated->load(); };
    if (!free_first && std::any_of(allocates.begin(), allocates.end(), is_allocated)) return false;
    for (const auto& memory : allocates) {
      memory->allocated->store(true);
      memory_map().visit(memory->address, [&](Range& range) { range.holder = memory; });
    }
    for (const CUdeviceptr address : frees) {
      std::shared_ptr<void> holder;
      const auto range = memory_map().find(address);
      if (range && range->kind == RangeKind::graph) free_graph_memory(*range, &holder);
      if (holder != nullptr) freed->push_back(std::move(holder));
    }
    return true;
  }
};

namespace {

// Nodes run one after the other: one of the orders that a device may choose.
template <typename Plan>
class GraphOperation final : public Operation {
 public:
  GraphOperation(std::shared_ptr<const Plan> plan, std::vector<std::shared_ptr<void>> freed)
      : plan_(std::move(plan)), freed_(std::move(freed)) {}
  OperationKind kind() const override { return OperationKind::other; }
  void execute(const Execution& execution) const override {
    for (const OperationPointer& operation : plan_->operations) {
      if (execution.context.failed()) return;
      operation->execute(execution);
    }
  }

 private:
  const std::shared_ptr<const Plan> plan_;
  const std::vector<std::shared_ptr<void>> freed_;
};

}  // namespace

std::shared_ptr<GraphExec> GraphExec::make(Device& device) {
  auto exec = std::make_shared<GraphExec>();
  if (!device.charge(settings().graph_bytes)) return nullptr;
  exec->charged_ = &device;
  return exec;
}

GraphExec::~GraphExec() {
  if (charged_ != nullptr) charged_->refund(settings().graph_bytes);
}

CUresult GraphExec::launch(const std::shared_ptr<Stream>& stream) {
  std::shared_ptr<const Plan> plan;
  std::vector<std::shared_ptr<void>> freed;
  {
    const std::lock_guard lock(mutex);
    if (plan_ == nullptr) {
      auto made = std::make_shared<Plan>();
      if (!made->append(*graph)) return CUDA_ERROR_INVALID_VALUE;
      plan_ = made;
    }
    plan = plan_;
    if (!plan->take_memory((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0, &freed))
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (const CUevent handle : plan->waits) {
    const std::shared_ptr<Event> event = events().share(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    wait_event(*event, stream);
  }
  stream->submit(std::make_shared<GraphOperation<Plan>>(plan, std::move(freed)));
  for (const CUevent handle : plan->records) {
    const std::shared_ptr<Event> event = events().share(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    record_event(*event, stream);
  }
  return CUDA_SUCCESS;
}

}  // namespace reprise::sim
