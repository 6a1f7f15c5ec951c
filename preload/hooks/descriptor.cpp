// Objects that carry a device address in a form of their own: TMA descriptors, textures, arrays.
#include <cstring>

#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/memory_calls.h"
#include "preload/hooks/submit.h"
#include "preload/tracking/allocations.h"
#include "preload/tracking/tensor_maps.h"

namespace reprise {
namespace {

CUresult encoded(CUresult result, const CUtensorMap* map, const void* address) {
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS) return result;
  CUtensorMap aligned;  // programs built with CUDA 12 align theirs to 64 bytes, CUDA 13's headers say more
  std::memcpy(&aligned, map, sizeof aligned);
  insert_tensor_map(aligned, reinterpret_cast<CUdeviceptr>(address));
  return result;
}

uint64_t element_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

uint64_t at_least_one(size_t extent) { return extent == 0 ? 1 : extent; }

// Arrays have a layout of their own and no address, so they stay resident; counted by the size of their elements.
template <typename Call>
CUresult make_array(const char* name, const CUDA_ARRAY3D_DESCRIPTOR* array, Call call) {
  const HookScope scope;
  if (!scope || array == nullptr) return call();
  const uint64_t bytes = at_least_one(array->Width) * at_least_one(array->Height) * at_least_one(array->Depth) *
                         array->NumChannels * element_bytes(array->Format);
  return beside_ours(scope, {BesideKind::array, name, current_device(), bytes}, call);
}

// Launches that are deferred may use it.
template <typename Call>
CUresult destroy_array(RowId id, Call call) {
  const HookScope scope;
  if (!scope) return call();
  if (const CUresult order = before_ordered(id); order != CUDA_SUCCESS) return order;
  return beside_ours(scope, {BesideKind::array, row(id).symbol, current_device()}, call);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                               void* address, const cuuint64_t* dimensions, const cuuint64_t* strides,
                                               const cuuint32_t* box, const cuuint32_t* element_strides,
                                               CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                               CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encoded(driver().cuTensorMapEncodeTiled(map, type, rank, address, dimensions, strides, box, element_strides,
                                                 interleave, swizzle, promotion, fill),
                 map, address);
}

REPRISE_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                                void* address, const cuuint64_t* dimensions, const cuuint64_t* strides,
                                                const int* lower, const int* upper, cuuint32_t channels,
                                                cuuint32_t pixels, const cuuint32_t* element_strides,
                                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encoded(driver().cuTensorMapEncodeIm2col(map, type, rank, address, dimensions, strides, lower, upper, channels,
                                                  pixels, element_strides, interleave, swizzle, promotion, fill),
                 map, address);
}

REPRISE_EXPORT CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                                    void* address, const cuuint64_t* dimensions,
                                                    const cuuint64_t* strides, int lower, int upper,
                                                    cuuint32_t channels, cuuint32_t pixels,
                                                    const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                                    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                                    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return encoded(
      driver().cuTensorMapEncodeIm2colWide(map, type, rank, address, dimensions, strides, lower, upper, channels,
                                           pixels, element_strides, interleave, mode, swizzle, promotion, fill),
      map, address);
}

REPRISE_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return encoded(driver().cuTensorMapReplaceAddress(map, address), map, address);
}

// A texture over plain memory: kernels reach it by a small number in their parameters, which no scan can tell from
// other numbers; so the allocation is marked hidden.
REPRISE_EXPORT CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                          const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto create = [=] { return driver().cuTexObjectCreate(object, resource, texture, view); };
  const HookScope scope;
  if (!scope || resource == nullptr) return create();
  CUdeviceptr address = 0;
  if (resource->resType == CU_RESOURCE_TYPE_LINEAR) address = resource->res.linear.devPtr;
  if (resource->resType == CU_RESOURCE_TYPE_PITCH2D) address = resource->res.pitch2D.devPtr;
  const CUresult result = with_operands("cuTexObjectCreate", {address}, create);
  Allocation allocation;
  if (result == CUDA_SUCCESS && address != 0 && find_allocation(address, &allocation)) set_hidden(allocation.address);
  return result;
}

REPRISE_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return driver().cuArrayCreate(array, shape);
  const CUDA_ARRAY3D_DESCRIPTOR flat{shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
  return make_array("cuArrayCreate", &flat, [&] { return driver().cuArrayCreate(array, shape); });
}
REPRISE_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return make_array("cuArray3DCreate", shape, [&] { return driver().cuArray3DCreate(array, shape); });
}
REPRISE_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                               unsigned levels) {
  return make_array("cuMipmappedArrayCreate", shape,
                    [&] { return driver().cuMipmappedArrayCreate(array, shape, levels); });
}
REPRISE_EXPORT CUresult cuArrayDestroy(CUarray array) {
  return destroy_array(RowId::k_cuArrayDestroy, [=] { return driver().cuArrayDestroy(array); });
}
REPRISE_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy_array(RowId::k_cuMipmappedArrayDestroy, [=] { return driver().cuMipmappedArrayDestroy(array); });
}
