// driver_headroom managed|lazy|eager|globals|library|graph|limit: the driver needs memory of its own once more has been
// allocated than the device has: managed memory, the code of modules whose kernels are launched for the first time, or
// that are loaded as a whole (CUDA_MODULE_LOADING), their variables, instantiated graphs, a larger buffer of printf.
#include <cstring>
#include <string>
#include <vector>

#include "tests/e2e/support/driver_program.h"

using program::kMiB;

namespace {

// Twins know no such name: the simulated device hashes what the parameter points to.
std::string module_text(int number) {
  return ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry first_launch_" + std::to_string(number) +
         "(.param .u64 a) { ret; }\n";
}

void lazy(const std::vector<CUdeviceptr>& tensors) {
  for (int i = 0; i < 4; ++i) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(cuModuleLoadData(&module, module_text(i).c_str()));
    CHECK(cuModuleGetFunction(&function, module, ("first_launch_" + std::to_string(i)).c_str()));
    CUdeviceptr tensor = tensors[static_cast<size_t>(i)];
    void* parameters[] = {&tensor};
    for (int again = 0; again < 2; ++again)
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuCtxSynchronize());
    std::printf("%08x\n", program::word(tensor));
  }
}

void launch(CUfunction function, CUdeviceptr tensor) {
  void* parameters[] = {&tensor};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(cuCtxSynchronize());
  std::printf("%08x\n", program::word(tensor));
}

std::string with_variable(int number) {
  std::string text = module_text(number);
  return text.insert(text.find(".visible .entry"), ".visible .global .align 4 .b8 large[12582912];\n");
}

void globals(const std::vector<CUdeviceptr>& tensors) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  CHECK(cuModuleLoadData(&module, with_variable(0).c_str()));
  CHECK(cuModuleGetGlobal(&variable, &bytes, module, "large"));
  CHECK(cuMemsetD32(variable, 7, bytes / 4));
  std::printf("large %zu %u\n", bytes, program::word(variable));
  CHECK(cuModuleGetFunction(&function, module, "first_launch_0"));
  launch(function, tensors[0]);
}

// Libraries have a module, and its variables, in each context that asks for one of its kernels.
void library(const std::vector<CUdeviceptr>& tensors) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CHECK(cuLibraryLoadData(&library, with_variable(1).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, "first_launch_1"));
  CHECK(cuKernelGetFunction(&function, kernel));
  launch(function, tensors[1]);
}

void graph(CUdeviceptr tensor) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context));
  CHECK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS parameters = {};
  parameters.dst = tensor;
  parameters.elementSize = 4;
  parameters.width = 2 * kMiB;
  parameters.height = 1;
  parameters.value = 77;
  CHECK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &parameters, context));
  for (int form = 0; form < 2; ++form) {
    CUgraphExec executable = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
    if (form == 0) CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    if (form == 1) CHECK(cuGraphInstantiateWithParams(&executable, graph, &how));
    CHECK(cuGraphLaunch(executable, nullptr));
    CHECK(cuCtxSynchronize());
    std::printf("%u\n", program::word(tensor));
  }
}

void managed() {
  CUdeviceptr own = 0;
  CHECK(cuMemAllocManaged(&own, 4 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemsetD32(own, 42, kMiB));
  std::printf("own %u\n", program::word(own));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  program::open_device();
  std::vector<CUdeviceptr> tensors;
  for (unsigned i = 0; i < 12; ++i) tensors.push_back(program::filled(8, i));
  CHECK(cuCtxSynchronize());
  const auto is = [&](const char* kind) { return std::strcmp(argv[1], kind) == 0; };
  if (is("managed")) managed();
  if (is("lazy") || is("eager")) lazy(tensors);
  if (is("globals")) globals(tensors);
  if (is("library")) library(tensors);
  if (is("graph")) graph(tensors[0]);
  if (is("limit")) CHECK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12 * kMiB));
  for (const CUdeviceptr tensor : tensors) std::printf("%08x\n", program::word(tensor));
  return 0;
}
