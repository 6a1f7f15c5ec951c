// cuLaunchKernel and its kin.
#include "tools/device/engines/device.h"
#include "tools/device/modules/launch.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/event.h"
#include "tools/device/streams/faults.h"

using namespace reprise::sim;

namespace {

CUresult make_operation(Context& context, CUfunction handle, const LaunchShape& shape, void** parameters, void** extra,
                        OperationPointer* operation) {
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(context, handle, &function));
  SIM_TRY(launch_fault(function->kernel->name));
  SIM_TRY(check_launch(*function, shape));
  ParameterBlob blob;
  SIM_TRY(blob.read(*function, parameters, extra));
  SIM_TRY(load_code(*function));
  function->loaded.store(true);
  *operation = std::make_shared<KernelOperation>(std::move(function), shape, std::move(blob));
  return CUDA_SUCCESS;
}

CUresult launch(Context& context, CUfunction handle, const LaunchShape& shape, CUstream stream, void** parameters,
                void** extra, Dispatched* dispatched = nullptr) {
  OperationPointer operation;
  SIM_TRY(make_operation(context, handle, shape, parameters, extra, &operation));
  const Context& owner = *static_cast<const KernelOperation&>(*operation).function->context;
  std::shared_ptr<Stream> target;
  SIM_TRY(find_work_stream(context, stream, &target));
  SIM_REQUIRE(&target->context == &owner, CUDA_ERROR_INVALID_HANDLE);
  return dispatch(context, stream, std::move(operation), dispatched);
}

// Events that a launch attribute names are recorded behind the kernel.
CUresult record_attributes(const CUlaunchConfig& config, const std::shared_ptr<Stream>& stream) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    CUevent handle = nullptr;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) handle = attribute.value.programmaticEvent.event;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      handle = attribute.value.launchCompletionEvent.event;
    }
    if (handle == nullptr) continue;
    const std::shared_ptr<Event> event = events().share(handle);
    SIM_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    record_event(*event, stream);
  }
  return CUDA_SUCCESS;
}

CUresult check_attributes(const CUlaunchConfig& config, LaunchShape& shape) {
  SIM_REQUIRE(config.numAttrs == 0 || config.attrs != nullptr, CUDA_ERROR_INVALID_VALUE);
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) shape.cooperative = attribute.value.cooperative != 0;
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& cluster = attribute.value.clusterDim;
    SIM_REQUIRE(cluster.x != 0 && cluster.y != 0 && cluster.z != 0, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(shape.grid[0] % cluster.x == 0 && shape.grid[1] % cluster.y == 0 && shape.grid[2] % cluster.z == 0,
                CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(uint64_t{cluster.x} * cluster.y * cluster.z <= 16, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
  SIM_ENTER_CONTEXT(context);
  const LaunchShape shape = {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, false};
  return launch(*context, f, shape, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(config != nullptr, CUDA_ERROR_INVALID_VALUE);
  LaunchShape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                       {config->blockDimX, config->blockDimY, config->blockDimZ},
                       config->sharedMemBytes,
                       false};
  SIM_TRY(check_attributes(*config, shape));
  Dispatched dispatched;
  SIM_TRY(launch(*context, f, shape, config->hStream, kernelParams, extra, &dispatched));
  return dispatched.captured ? CUDA_SUCCESS : record_attributes(*config, dispatched.stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void** kernelParams) {
  SIM_ENTER_CONTEXT(context);
  const LaunchShape shape = {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, true};
  return launch(*context, f, shape, hStream, kernelParams, nullptr);
}

}  // extern "C"
