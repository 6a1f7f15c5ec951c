// What a device is: cuDeviceGet*, an H100-like one.
#include <cstdio>
#include <cstring>

#include "tools/device/base/device_name.h"
#include "tools/device/base/device_uuid.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

struct AttributeValue {
  CUdevice_attribute attribute;
  int value;
};

constexpr AttributeValue kAttributes[] = {
#define REPRISE_SIM_ATTRIBUTE(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
#include "tools/device/api/attributes.def"
#undef REPRISE_SIM_ATTRIBUTE
};

int attribute_of(CUdevice_attribute attribute, CUdevice device) {
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return device + 1;
  const int architecture = static_cast<int>(settings().architecture);
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return architecture / 10;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) return architecture % 10;
  for (const AttributeValue& known : kAttributes) {
    if (known.attribute == attribute) return known.value;
  }
  return 0;
}

}  // namespace

extern "C" {

CUresult cuDeviceGetCount(int* count) {
  SIM_ENTER();
  SIM_REQUIRE(count != nullptr, CUDA_ERROR_INVALID_VALUE);
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  SIM_ENTER();
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(ordinal) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(name != nullptr && len > 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  std::snprintf(name, static_cast<size_t>(len), "%s", kDeviceName);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(uuid != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *uuid = device_uuid(dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid_v2(uuid, dev); }

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(bytes != nullptr, CUDA_ERROR_INVALID_VALUE);
  const Device* device = find_device(dev);
  SIM_REQUIRE(device != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *bytes = device->capacity();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pi != nullptr && attrib > 0 && attrib < CU_DEVICE_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *pi = attribute_of(attrib, dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(major != nullptr && minor != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *major = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
  *minor = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(prop != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *prop = {};
  prop->maxThreadsPerBlock = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, dev);
  for (int i = 0; i < 3; ++i) {
    prop->maxThreadsDim[i] =
        attribute_of(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i), dev);
    prop->maxGridSize[i] = attribute_of(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i), dev);
  }
  prop->sharedMemPerBlock = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, dev);
  prop->totalConstantMemory = attribute_of(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, dev);
  prop->SIMDWidth = attribute_of(CU_DEVICE_ATTRIBUTE_WARP_SIZE, dev);
  prop->memPitch = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_PITCH, dev);
  prop->regsPerBlock = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, dev);
  prop->clockRate = attribute_of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, dev);
  prop->textureAlign = attribute_of(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pciBusId != nullptr && len >= 13, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  std::snprintf(pciBusId, static_cast<size_t>(len), "0000:%02X:00.0", static_cast<unsigned>(dev + 1));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  SIM_ENTER();
  SIM_REQUIRE(dev != nullptr && pciBusId != nullptr, CUDA_ERROR_INVALID_VALUE);
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(pciBusId, "%x:%x:", &domain, &bus) != 2 && std::sscanf(pciBusId, "%x:", &bus) != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SIM_REQUIRE(find_device(static_cast<int>(bus) - 1) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *dev = static_cast<CUdevice>(bus) - 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  SIM_ENTER();
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(srcDevice) != nullptr && find_device(dstDevice) != nullptr && srcDevice != dstDevice,
              CUDA_ERROR_INVALID_DEVICE);
  *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

// A graph's memory is there from the making of its node on: used is what was asked for, reserved what it takes.
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  SIM_ENTER();
  const Device* found = find_device(device);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_DEVICE);
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *bytes = found->graph_memory.used.now();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *bytes = found->graph_memory.reserved.now();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *bytes = found->graph_memory.used.high();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *bytes = found->graph_memory.reserved.high();
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// The high marks can only be set back to now.
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  SIM_ENTER();
  Device* found = find_device(device);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_DEVICE);
  const bool used = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  SIM_REQUIRE(used || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(value != nullptr && *static_cast<const cuuint64_t*>(value) == 0, CUDA_ERROR_INVALID_VALUE);
  (used ? found->graph_memory.used : found->graph_memory.reserved).reset();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pi != nullptr && type >= 0 && type < CU_EXEC_AFFINITY_TYPE_MAX, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  *pi = 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
