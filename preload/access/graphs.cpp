#include "preload/access/graphs.h"

#include <pthread.h>

#include <cstdlib>
#include <new>

#include "preload/access/arguments.h"
#include "preload/access/launch_payload.h"
#include "preload/driver/driver.h"
#include "preload/trace/signature.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

// A whole allocation, for reading and writing: a graph's nodes overlap as they like. Address 0: what the kernels of one
// module share without naming it.
struct Operand {
  CUdeviceptr address;
  uint64_t size;
  uint64_t id;
};

struct GraphAccesses {
  bool opaque = false;
  bool host = false;     // its nodes read or write host memory
  uint64_t content = 0;  // hash over nodes: another graph is another call
  uint32_t allocations = 0;
  uint32_t count = 0;
  Operand operands[kMaxGraphAccesses] = {};
};

constinit HandleMap graphs;  // CUgraphExec -> GraphAccesses*
pthread_mutex_t graph_mutex = PTHREAD_MUTEX_INITIALIZER;
constexpr int kMaxNesting = 8;

class GraphLock {
 public:
  GraphLock() noexcept { pthread_mutex_lock(&graph_mutex); }
  ~GraphLock() { pthread_mutex_unlock(&graph_mutex); }
  GraphLock(const GraphLock&) = delete;
  GraphLock& operator=(const GraphLock&) = delete;
};

uint64_t key(CUgraphExec executable) { return reinterpret_cast<uint64_t>(executable); }

void add_operand(GraphAccesses* found, const Operand& operand) {
  for (uint32_t i = 0; i < found->count; ++i) {
    if (found->operands[i].id == operand.id) return;
  }
  if (found->count == kMaxGraphAccesses) {
    found->opaque = true;
    return;
  }
  found->operands[found->count++] = operand;
}

void add_address(GraphAccesses* found, CUdeviceptr address) {
  Allocation allocation;
  if (find_allocation(address, &allocation)) {
    add_operand(found, {allocation.address, allocation.size, allocation.id});
  }
}

void read_kernel(GraphAccesses* found, CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS node_params{};
  if (driver().cuGraphKernelNodeGetParams(node, &node_params) != CUDA_SUCCESS) {
    found->opaque = true;
    return;
  }
  LaunchRequest request{};
  request.handle = node_params.func != nullptr ? node_params.func : reinterpret_cast<CUfunction>(node_params.kern);
  request.parameters = node_params.kernelParams;
  request.extra = node_params.extra;
  const Function* function = find_function(request.handle);
  const LaunchPlan plan = plan_launch(request, function, false);
  const uint32_t room = access_room(plan.parameter_bytes);
  void* payload = std::aligned_alloc(16, (plan.payload_bytes + 15) / 16 * 16);
  auto* accesses = static_cast<Access*>(std::malloc(room * sizeof(Access)));
  if (function == nullptr || plan.source == LaunchPayload::Source::raw || payload == nullptr || accesses == nullptr) {
    found->opaque = true;
  } else {
    build_launch(request, function, plan, false, payload);
    const auto* head = static_cast<const LaunchPayload*>(payload);
    CommandBuilder builder(trace::OpKind::launch, function->name, CU_STREAM_LEGACY, accesses, room);
    scan_launch(builder, *function, static_cast<const uint8_t*>(payload) + head->parameters_offset,
                head->parameter_bytes, {node_params.gridDimX, node_params.gridDimY});
    for (uint32_t i = 0; i < builder.command.access_count; ++i) {
      if (accesses[i].address != 0) add_address(found, accesses[i].address);
      if (accesses[i].address == 0) add_operand(found, {0, 1, accesses[i].allocation});
    }
    found->opaque = found->opaque || (builder.command.flags & trace::kOpOpaque) != 0;
    found->content = trace::hash_mix(found->content, function->name_hash);
  }
  std::free(accesses);
  std::free(payload);
}

void read_copy(GraphAccesses* found, CUgraphNode node) {
  CUDA_MEMCPY3D copy{};
  if (driver().cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) {
    found->opaque = true;
    return;
  }
  const auto side = [found](CUmemorytype type, const void* host, CUdeviceptr device) {
    if (type == CU_MEMORYTYPE_ARRAY) return;
    found->host = found->host || type == CU_MEMORYTYPE_HOST;
    add_address(found, type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device);
  };
  side(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  side(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
  found->content = trace::hash_mix(found->content, copy.WidthInBytes * copy.Height * copy.Depth);
}

void read_memset(GraphAccesses* found, CUgraphNode node) {
  CUDA_MEMSET_NODE_PARAMS set{};
  if (driver().cuGraphMemsetNodeGetParams(node, &set) != CUDA_SUCCESS) {
    found->opaque = true;
    return;
  }
  add_address(found, set.dst);
  found->content = trace::hash_mix(found->content, set.width * set.height);
}

void read_graph(GraphAccesses* found, CUgraph graph, int depth);

void read_node(GraphAccesses* found, CUgraphNode node, int depth) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (driver().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
    found->opaque = true;
    return;
  }
  found->content = trace::hash_mix(found->content, static_cast<uint64_t>(type));
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return read_kernel(found, node);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return read_copy(found, node);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return read_memset(found, node);
    case CU_GRAPH_NODE_TYPE_HOST:
      found->host = true;
      return;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:  // memory of the graph's own, which we never move
      ++found->allocations;
      return;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      if (depth < kMaxNesting && driver().cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) {
        return read_graph(found, child, depth + 1);
      }
      break;
    }
    default:  // events, semaphores, conditions, batches of memory operations: order or work that we cannot see
      break;
  }
  found->opaque = true;
}

void read_graph(GraphAccesses* found, CUgraph graph, int depth) {
  size_t count = 0;
  if (driver().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    found->opaque = true;
    return;
  }
  auto* nodes = static_cast<CUgraphNode*>(std::calloc(count + 1, sizeof(CUgraphNode)));
  if (nodes == nullptr || driver().cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS) {
    found->opaque = true;
    count = 0;
  }
  for (size_t i = 0; i < count; ++i) read_node(found, nodes[i], depth);
  std::free(nodes);
}

// Takes the lock; frees what was known before.
void replace(CUgraphExec executable, GraphAccesses* fresh) {
  const GraphLock lock;
  delete reinterpret_cast<GraphAccesses*>(graphs.find(key(executable)));
  graphs.set(key(executable), reinterpret_cast<uint64_t>(fresh));
}

// The graph names addresses. Where an allocation has gone that was there when it was made, others may lie there now:
// all that is certain then is that it touches what it names.
void touch_operand(CommandBuilder& builder, const Operand& operand) {
  if (operand.address == 0) return builder.touch_unplaced(operand.id);
  Allocation allocation;
  if (find_allocation(operand.address, &allocation) && allocation.address == operand.address &&
      allocation.size == operand.size) {
    return builder.touch(allocation, operand.address, 0, trace::kAccessRead | trace::kAccessWrite, trace::kNoParameter);
  }
  builder.flag(trace::kOpOpaque);
}

}  // namespace

uint32_t record_graph(CUgraphExec executable, CUgraph graph) noexcept {
  auto* found = new (std::nothrow) GraphAccesses;
  if (found != nullptr) read_graph(found, graph, 0);
  const uint32_t allocations = found == nullptr ? 0 : found->allocations;
  replace(executable, found);  // without memory: unknown, so opaque
  return allocations;
}

void forget_graph_accesses(CUgraphExec executable) noexcept { replace(executable, nullptr); }

void forget_graph(CUgraphExec executable) noexcept { replace(executable, nullptr); }

void touch_graph(CommandBuilder& builder, CUgraphExec executable) noexcept {
  const GraphLock lock;
  const auto* known = reinterpret_cast<const GraphAccesses*>(graphs.find(key(executable)));
  if (known == nullptr) {
    builder.flag(trace::kOpOpaque);
    return;
  }
  if (known->opaque) builder.flag(trace::kOpOpaque);
  if (known->host) builder.flag(trace::kOpHostVisible);
  for (uint32_t i = 0; i < known->count; ++i) touch_operand(builder, known->operands[i]);
  builder.command.signature = known->content;
}

}  // namespace reprise
