#include "tools/device/graphs/parameters.h"

#include "tools/device/engines/device.h"
#include "tools/device/memory/box_copy.h"
#include "tools/device/modules/launch.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/operations.h"

namespace reprise::sim {

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS& p) {
  return {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
          p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
}

CUresult kernel_operation(Context& context, const CUDA_KERNEL_NODE_PARAMS& p, OperationPointer* operation) {
  Context* target = p.ctx == nullptr ? &context : find_context(p.ctx);
  SIM_REQUIRE(target != nullptr, CUDA_ERROR_INVALID_VALUE);
  const CUfunction handle = p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*target, handle, &function));
  const LaunchShape shape = {
      {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes, false};
  SIM_TRY(check_launch(*function, shape));
  ParameterBlob blob;
  SIM_TRY(blob.read(*function, p.kernelParams, p.extra));
  *operation = std::make_shared<KernelOperation>(std::move(function), shape, std::move(blob));
  return CUDA_SUCCESS;
}

CUresult memcpy_operation(Context& context, const CUDA_MEMCPY3D& p, OperationPointer* operation) {
  CopyPlan plan;
  SIM_TRY(plan_box(context, p, &plan));
  SIM_REQUIRE(plan.shape.bytes() != 0, CUDA_ERROR_INVALID_VALUE);
  *operation = copy_operation(plan);
  return CUDA_SUCCESS;
}

CUresult memset_operation(const CUDA_MEMSET_NODE_PARAMS& p, OperationPointer* operation) {
  SIM_REQUIRE(p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(p.width != 0 && p.height != 0, CUDA_ERROR_INVALID_VALUE);
  const MemsetShape shape = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  SIM_TRY(check_memset(shape));
  *operation = memset_operation(shape);
  return CUDA_SUCCESS;
}

CUresult host_operation(const CUDA_HOST_NODE_PARAMS& p, OperationPointer* operation) {
  SIM_REQUIRE(p.fn != nullptr, CUDA_ERROR_INVALID_VALUE);
  *operation = host_operation(p.fn, p.userData);
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS kernel_parameters(GraphNode& node) {
  const auto& operation = static_cast<const KernelOperation&>(*node.operation);
  const std::vector<ParameterImage>& layout = operation.function->kernel->parameters;
  node.parameter_pointers.clear();
  for (const ParameterImage& parameter : layout) {
    const uint8_t* at = operation.blob.data() + (parameter.offset - layout[0].offset);
    node.parameter_pointers.push_back(const_cast<uint8_t*>(at));
  }
  const LaunchShape& shape = operation.shape;
  CUDA_KERNEL_NODE_PARAMS p = {};
  p.func = operation.function->handle;
  p.gridDimX = shape.grid[0];
  p.gridDimY = shape.grid[1];
  p.gridDimZ = shape.grid[2];
  p.blockDimX = shape.block[0];
  p.blockDimY = shape.block[1];
  p.blockDimZ = shape.block[2];
  p.sharedMemBytes = shape.shared_bytes;
  p.kernelParams = node.parameter_pointers.empty() ? nullptr : node.parameter_pointers.data();
  p.kern = operation.function->of_kernel;
  p.ctx = operation.function->context->handle;
  return p;
}

CUDA_MEMCPY3D memcpy_parameters(const GraphNode& node) {
  const CopyPlan& plan = copy_plan(*node.operation);
  const CopyShape& shape = plan.shape;
  CUDA_MEMCPY3D box = {};
  const bool from_host = plan.host_only || plan.engine == EngineKind::host_to_device;
  const bool to_host = plan.host_only || plan.engine == EngineKind::device_to_host;
  box.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  box.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  box.srcHost = from_host ? reinterpret_cast<const void*>(shape.source) : nullptr;
  box.srcDevice = from_host ? 0 : shape.source;
  box.dstHost = to_host ? reinterpret_cast<void*>(shape.destination) : nullptr;
  box.dstDevice = to_host ? 0 : shape.destination;
  box.srcPitch = shape.source_pitch;
  box.srcHeight = shape.source_pitch == 0 ? 0 : shape.source_slice / shape.source_pitch;
  box.dstPitch = shape.destination_pitch;
  box.dstHeight = shape.destination_pitch == 0 ? 0 : shape.destination_slice / shape.destination_pitch;
  box.WidthInBytes = shape.width;
  box.Height = shape.height;
  box.Depth = shape.depth;
  return box;
}

CUDA_MEMSET_NODE_PARAMS memset_parameters(const GraphNode& node) {
  const MemsetShape& shape = memset_shape(*node.operation);
  return {shape.address, shape.pitch, shape.value, shape.element_bytes, shape.width, shape.height};
}

CUresult allocate_graph_memory(Context& context, CUDA_MEM_ALLOC_NODE_PARAMS* p, std::shared_ptr<GraphMemory>* memory) {
  SIM_REQUIRE(p != nullptr && p->bytesize != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(p->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                  find_device(p->poolProps.location.id) == &context.device,
              CUDA_ERROR_INVALID_VALUE);
  auto made = std::make_shared<GraphMemory>();
  SIM_TRY(allocate_device_memory(context, p->bytesize, RangeKind::graph, nullptr, &made->address));
  memory_map().visit(made->address, [&](const Range& range) { made->allocated = range.allocated; });
  p->dptr = made->address;
  made->parameters = *p;
  made->parameters.accessDescs = nullptr;
  made->parameters.accessDescCount = 0;
  made->device = &context.device;
  context.device.graph_memory.used.add(static_cast<int64_t>(p->bytesize));
  *memory = std::move(made);
  return CUDA_SUCCESS;
}

CUresult describe(Context& context, CUgraphNodeParams& p, GraphNode* node) {
  node->type = p.type;
  node->operation = empty_operation();
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& k = p.kernel;
      return kernel_operation(context,
                              {k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ,
                               k.sharedMemBytes, k.kernelParams, k.extra, k.kern, k.ctx},
                              &node->operation);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return memcpy_operation(context, p.memcpy.copyParams, &node->operation);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = p.memset;
      return memset_operation({m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, &node->operation);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return host_operation({p.host.fn, p.host.userData}, &node->operation);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const std::shared_ptr<Graph> child = graphs().share(p.graph.graph);
      SIM_REQUIRE(child != nullptr, CUDA_ERROR_INVALID_VALUE);
      node->child = child->clone();
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      node->event = p.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? p.eventWait.event : p.eventRecord.event;
      return events().get(node->event) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS_v1 plain = {p.alloc.poolProps, p.alloc.accessDescs, p.alloc.accessDescCount,
                                             p.alloc.bytesize, 0};
      SIM_TRY(allocate_graph_memory(context, &plain, &node->memory));
      p.alloc.dptr = plain.dptr;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      node->freed = p.free.dptr;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace reprise::sim
