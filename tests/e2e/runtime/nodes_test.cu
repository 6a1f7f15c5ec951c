// An ordinary nvcc program that builds graphs node by node, copies boxes, and loads kernels of its own.
#include <cuda_runtime.h>

#include <cstring>
#include <string>
#include <vector>

#include "expect.h"
#include "kernels.cuh"

static void count_call(void* user) { ++*static_cast<int*>(user); }

struct Memory {
  float* at = nullptr;
  explicit Memory(size_t bytes = kBytes) { OK(cudaMalloc(&at, bytes)); }
  ~Memory() { OK(cudaFree(at)); }
};

static cudaKernelNodeParams fill_node(void** arguments) {
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void*>(&fill);
  node.gridDim = dim3(4);
  node.blockDim = dim3(256);
  node.kernelParams = arguments;
  return node;
}

static void run(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, nullptr));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphExecDestroy(executable));
}

// memset, a kernel, a copy to the host and a host function, one behind the other.
static void chain() {
  const Memory data;
  std::vector<float> host(kCount);
  int called = 0;
  cudaGraph_t graph = nullptr;
  OK(cudaGraphCreate(&graph, 0));

  cudaMemsetParams clear = {};
  clear.dst = data.at;
  clear.elementSize = 4;
  clear.width = kCount;
  clear.height = 1;
  cudaGraphNode_t nodes[4];
  OK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &clear));
  float* address = data.at;
  int count = kCount / 2;
  float value = 3.0f;
  void* arguments[] = {&address, &count, &value};
  cudaKernelNodeParams kernel = fill_node(arguments);
  OK(cudaGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, host.data(), data.at, kBytes, cudaMemcpyDeviceToHost));
  const cudaHostNodeParams notify = {count_call, &called};
  OK(cudaGraphAddHostNode(&nodes[3], graph, &nodes[2], 1, &notify));

  size_t number = 0;
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &number));
  EXPECT(number == 3);
  OK(cudaGraphGetRootNodes(graph, nullptr, &number));
  EXPECT(number == 1);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(nodes[2], &type));
  EXPECT(type == cudaGraphNodeTypeMemcpy);

  cudaKernelNodeParams told = {};
  OK(cudaGraphKernelNodeGetParams(nodes[1], &told));
  EXPECT(told.func == reinterpret_cast<void*>(&fill) && told.gridDim.x == 4 && told.blockDim.x == 256);
  EXPECT(*static_cast<float*>(told.kernelParams[2]) == 3.0f);
  cudaMemcpy3DParms copy = {};
  OK(cudaGraphMemcpyNodeGetParams(nodes[2], &copy));
  EXPECT(copy.kind == cudaMemcpyDeviceToHost && copy.srcPtr.ptr == data.at && copy.dstPtr.ptr == host.data());
  EXPECT(copy.extent.width == kBytes && copy.extent.height == 1 && copy.extent.depth == 1);

  run(graph);
  EXPECT(called == 1 && host[1] == 4.0f && host[kCount / 2] == 0.0f);

  cudaGraphExec_t executable = nullptr;
  cudaGraphInstantiateParams how = {};
  OK(cudaGraphInstantiateWithParams(&executable, graph, &how));
  EXPECT(how.result_out == cudaGraphInstantiateSuccess);
  value = 7.0f;
  OK(cudaGraphExecKernelNodeSetParams(executable, nodes[1], &kernel));
  OK(cudaGraphNodeSetEnabled(executable, nodes[0], 0));
  OK(cudaGraphLaunch(executable, cudaStreamPerThread));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
  EXPECT(called == 2 && host[1] == 8.0f);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
}

// Memory of the graph, nodes by cudaGraphAddNode, and a variable of the program.
static void described() {
  cudaGraph_t graph = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams allocation = {};
  allocation.type = cudaGraphNodeTypeMemAlloc;
  allocation.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
  allocation.alloc.bytesize = kBytes;
  cudaGraphNode_t nodes[4];
  OK(cudaGraphAddNode(&nodes[0], graph, nullptr, nullptr, 0, &allocation));
  EXPECT(allocation.alloc.dptr != nullptr);
  auto* address = static_cast<float*>(allocation.alloc.dptr);
  int count = kCount;
  float value = 1.0f;
  void* arguments[] = {&address, &count, &value};
  const cudaKernelNodeParams fill_it = fill_node(arguments);
  cudaGraphNodeParams kernel = {};
  kernel.type = cudaGraphNodeTypeKernel;
  kernel.kernel.func = fill_it.func;
  kernel.kernel.gridDim = fill_it.gridDim;
  kernel.kernel.blockDim = fill_it.blockDim;
  kernel.kernel.kernelParams = fill_it.kernelParams;
  OK(cudaGraphAddNode(&nodes[1], graph, &nodes[0], nullptr, 1, &kernel));
  OK(cudaGraphAddMemcpyNodeToSymbol(&nodes[2], graph, &nodes[1], 1, weights, address + 4, sizeof(float), 4,
                                    cudaMemcpyDeviceToDevice));
  OK(cudaGraphAddMemFreeNode(&nodes[3], graph, &nodes[2], 1, address));
  run(graph);
  float weight = 0;
  OK(cudaMemcpyFromSymbol(&weight, weights, sizeof weight, 4));
  EXPECT(weight == 5.0f);
  cudaGraphNodeParams unknown = {};
  unknown.type = static_cast<cudaGraphNodeType>(99);
  EXPECT(cudaGraphAddNode(&nodes[3], graph, nullptr, nullptr, 0, &unknown) != cudaSuccess);
  EXPECT(cudaGraphAddKernelNode(&nodes[3], graph, nullptr, 0, nullptr) == cudaErrorInvalidValue);
  OK(cudaGraphDestroy(graph));
  cudaGetLastError();
}

static void boxes() {
  const cudaExtent extent = {40, 3, 5};
  cudaPitchedPtr device = {};
  OK(cudaMalloc3D(&device, extent));
  EXPECT(device.pitch >= 40 && device.xsize == 40 && device.ysize == 3);
  OK(cudaMemset3D(device, 7, extent));
  std::vector<unsigned char> from(40 * 3 * 5), to(40 * 3 * 5, 0);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 5);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = {from.data(), 40, 40, 3};
  copy.dstPtr = device;
  copy.srcPos = copy.dstPos = {8, 1, 2};
  copy.extent = {20, 2, 3};
  copy.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&copy));
  copy = {};
  copy.srcPtr = device;
  copy.dstPtr = {to.data(), 40, 40, 3};
  copy.extent = extent;
  copy.kind = cudaMemcpyDefault;
  OK(cudaMemcpy3DAsync(&copy, cudaStreamPerThread));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
  bool right = true;
  for (size_t z = 0; z < 5; ++z) {
    for (size_t y = 0; y < 3; ++y) {
      for (size_t x = 0; x < 40; ++x) {
        const size_t at = (z * 3 + y) * 40 + x;
        const bool inside = x >= 8 && x < 28 && y >= 1 && z >= 2;
        right = right && to[at] == (inside ? from[at] : 7);
      }
    }
  }
  EXPECT(right);
  copy.kind = static_cast<cudaMemcpyKind>(17);
  EXPECT(cudaMemcpy3D(&copy) == cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
  OK(cudaFree(device.ptr));
}

static void batches() {
  const Memory one, other;
  std::vector<float> from(kCount, 2.5f), to(kCount, 0.0f);
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreate(&stream));
  void* destinations[] = {one.at};
  const void* sources[] = {from.data()};
  const size_t sizes[] = {kBytes};
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  OK(cudaMemcpyBatchAsync(destinations, sources, sizes, 1, &attributes, &first, 1, stream));
  OK(cudaMemcpyAsync(to.data(), one.at, kBytes, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  EXPECT(to[kCount - 1] == 2.5f);
  int device = -1;
  OK(cudaStreamGetDevice(stream, &device));
  EXPECT(device == 0);
  cudaStreamAttrValue policy = {};
  policy.syncPolicy = cudaSyncPolicyYield;
  OK(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &policy));
  policy.syncPolicy = cudaSyncPolicyAuto;
  OK(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &policy));
  EXPECT(policy.syncPolicy == cudaSyncPolicyYield);
  OK(cudaStreamDestroy(stream));
  float* managed = nullptr;
  OK(cudaMallocManaged(&managed, kBytes));
  OK(cudaStreamAttachMemAsync(cudaStreamPerThread, managed, 0, cudaMemAttachHost));
  EXPECT(cudaStreamAttachMemAsync(cudaStreamLegacy, managed, 0, cudaMemAttachSingle) == cudaErrorInvalidValue);
  OK(cudaMemPrefetchAsync(managed, kBytes, {cudaMemLocationTypeDevice, 0}, 0, nullptr));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(managed));
  cudaGetLastError();
}

// A kernel's handle may be passed wherever a function of the program's may.
static void handles() {
  const Memory data;
  cudaKernel_t kernel = nullptr;
  OK(cudaGetKernel(&kernel, fill));
  float* address = data.at;
  int count = kCount;
  float value = 9.0f;
  void* arguments[] = {&address, &count, &value};
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(4), dim3(256), arguments, 0, nullptr));
  EXPECT(read_back(data.at)[1] == 10.0f);
  cudaLibrary_t library = nullptr;
  constexpr char kText[] =
      ".version 8.0\n.target sm_52\n.address_size 64\n.visible .entry of_a_library(.param .u64 a)\n{ ret; }\n";
  OK(cudaLibraryLoadData(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned kernels = 0;
  OK(cudaLibraryGetKernelCount(&kernels, library));
  EXPECT(kernels == 1);
  OK(cudaLibraryGetKernel(&kernel, library, "of_a_library"));
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
  EXPECT(cudaLibraryGetKernel(&kernel, library, "another") == cudaErrorSymbolNotFound);
  OK(cudaLibraryUnload(library));
  cudaGetLastError();
}

int main() {
  chain();
  described();
  boxes();
  batches();
  handles();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
