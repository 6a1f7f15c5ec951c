// Tensor map descriptors. They are opaque: 128 bytes whose first eight are the address, then everything else that was
// asked for, folded. No kernel twin reads them, but programs make them, copy them and pass them on.
#include <cstring>

#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

constexpr uint32_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};

struct Encoding {
  CUtensorMapDataType type;
  uint32_t rank;
  const void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

bool is_packed_wide(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

CUresult check_modes(const Encoding& e) {
  SIM_REQUIRE(e.type >= CU_TENSOR_MAP_DATA_TYPE_UINT8 && e.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(e.interleave >= CU_TENSOR_MAP_INTERLEAVE_NONE && e.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(e.swizzle >= CU_TENSOR_MAP_SWIZZLE_NONE && e.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(e.promotion >= CU_TENSOR_MAP_L2_PROMOTION_NONE && e.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(
      e.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || e.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
      CUDA_ERROR_INVALID_VALUE);
  const bool real = e.type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && e.type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
  SIM_REQUIRE(e.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || real, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(e.interleave != CU_TENSOR_MAP_INTERLEAVE_32B || e.swizzle == CU_TENSOR_MAP_SWIZZLE_32B,
              CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

CUresult check(const CUtensorMap* map, const Encoding& e, uint32_t lowest_rank) {
  SIM_REQUIRE(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_modes(e));
  if (e.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && lowest_rank < 3) lowest_rank = 3;
  SIM_REQUIRE(e.rank >= lowest_rank && e.rank <= 5, CUDA_ERROR_INVALID_VALUE);
  const bool wide = e.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_packed_wide(e.type);
  const uint64_t unit = wide ? 32 : 16;
  SIM_REQUIRE(e.address != nullptr && reinterpret_cast<uintptr_t>(e.address) % unit == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(e.sizes != nullptr && e.element_strides != nullptr && (e.rank == 1 || e.strides != nullptr),
              CUDA_ERROR_INVALID_VALUE);
  for (uint32_t i = 0; i < e.rank; ++i) {
    SIM_REQUIRE(e.sizes[i] != 0 && e.sizes[i] <= 1ull << 32, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(e.element_strides[i] != 0 && e.element_strides[i] <= 8, CUDA_ERROR_INVALID_VALUE);
  }
  for (uint32_t i = 0; i + 1 < e.rank; ++i) {
    SIM_REQUIRE(e.strides[i] % unit == 0 && e.strides[i] < 1ull << 40, CUDA_ERROR_INVALID_VALUE);
  }
  return CUDA_SUCCESS;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDull;
}

// `extra` tells the kinds and their own arguments apart.
void encode(CUtensorMap* map, const Encoding& e, uint64_t extra) {
  std::memset(map, 0, sizeof(*map));
  map->opaque[0] = reinterpret_cast<uint64_t>(e.address);
  map->opaque[1] = e.rank | static_cast<uint64_t>(e.type) << 8 | static_cast<uint64_t>(e.interleave) << 16 |
                   static_cast<uint64_t>(e.swizzle) << 24 | static_cast<uint64_t>(e.promotion) << 32 |
                   static_cast<uint64_t>(e.fill) << 40;
  for (uint32_t i = 0; i < e.rank; ++i) map->opaque[2 + i] = e.sizes[i];
  uint64_t hash = extra;
  for (uint32_t i = 0; i + 1 < e.rank; ++i) hash = mix(hash, map->opaque[7 + i] = e.strides[i]);
  for (uint32_t i = 0; i < e.rank; ++i) hash = mix(hash, e.element_strides[i]);
  map->opaque[15] = hash;
}

CUresult check_columns(cuuint32_t channels, cuuint32_t pixels) {
  return channels <= 256 && pixels <= 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                const cuuint32_t* boxDim, const cuuint32_t* elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  SIM_ENTER();
  const Encoding encoding = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
  SIM_TRY(check(tensorMap, encoding, 1));
  SIM_REQUIRE(boxDim != nullptr, CUDA_ERROR_INVALID_VALUE);
  uint64_t box = 1;
  for (uint32_t i = 0; i < tensorRank; ++i) {
    SIM_REQUIRE(boxDim[i] != 0 && boxDim[i] <= 256, CUDA_ERROR_INVALID_VALUE);
    box = mix(box, boxDim[i]);
  }
  const uint64_t inner = uint64_t{boxDim[0]} * kElementBytes[tensorDataType];
  const bool packed = tensorDataType >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
  if (interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && !packed) {
    SIM_REQUIRE(inner % 16 == 0, CUDA_ERROR_INVALID_VALUE);
    const uint64_t widest = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE  ? UINT64_MAX
                            : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32
                            : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                                   : 128;
    SIM_REQUIRE(inner <= widest, CUDA_ERROR_INVALID_VALUE);
  }
  encode(tensorMap, encoding, box);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                 void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                 const int* pixelBoxLowerCorner, const int* pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
  SIM_ENTER();
  const Encoding encoding = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
  SIM_TRY(check(tensorMap, encoding, 3));
  SIM_REQUIRE(pixelBoxLowerCorner != nullptr && pixelBoxUpperCorner != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_columns(channelsPerPixel, pixelsPerColumn));
  uint64_t corners = mix(channelsPerPixel, pixelsPerColumn);
  for (uint32_t i = 0; i + 2 < tensorRank; ++i) {
    corners =
        mix(mix(corners, static_cast<uint64_t>(pixelBoxLowerCorner[i])), static_cast<uint64_t>(pixelBoxUpperCorner[i]));
  }
  encode(tensorMap, encoding, corners);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                     void* globalAddress, const cuuint64_t* globalDim, const cuuint64_t* globalStrides,
                                     int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
                                     cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                     const cuuint32_t* elementStrides, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  SIM_ENTER();
  const Encoding encoding = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
  SIM_TRY(check(tensorMap, encoding, 3));
  SIM_TRY(check_columns(channelsPerPixel, pixelsPerColumn));
  const uint64_t corners =
      mix(static_cast<uint64_t>(pixelBoxLowerCornerWidth), static_cast<uint64_t>(pixelBoxUpperCornerWidth));
  encode(tensorMap, encoding, mix(mix(corners, channelsPerPixel), mix(pixelsPerColumn, static_cast<uint64_t>(mode))));
  return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* tensorMap, void* globalAddress) {
  SIM_ENTER();
  SIM_REQUIRE(tensorMap != nullptr && reinterpret_cast<uintptr_t>(tensorMap) % 64 == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(globalAddress != nullptr && reinterpret_cast<uintptr_t>(globalAddress) % 16 == 0,
              CUDA_ERROR_INVALID_VALUE);
  tensorMap->opaque[0] = reinterpret_cast<uint64_t>(globalAddress);
  return CUDA_SUCCESS;
}

}  // extern "C"
