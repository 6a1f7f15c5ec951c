// What the library and the kernel's twin must agree on: the parameters, and what a number is made of. Callers: product,
// twin.
#pragma once
#include <library_types.h>

#include <cstdint>

namespace reprise::sim::blas {

// As the device aligns them, and the host its members.
struct Parameters {
#define PARAMETER64(name) uint64_t name = 0;
#define PARAMETER32(name) uint32_t name = 0;
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
};

struct NumberType {
  uint32_t parts = 1;       // 2: complex
  uint32_t part_bytes = 0;  // 0: a type that products of ours do not have
  bool integer = false;
  uint32_t bytes() const { return parts * part_bytes; }
};

inline NumberType number_type(uint32_t type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return {1, 2};
    case CUDA_R_32F:
      return {1, 4};
    case CUDA_R_64F:
      return {1, 8};
    case CUDA_C_32F:
      return {2, 4};
    case CUDA_C_64F:
      return {2, 8};
    case CUDA_R_8I:
      return {1, 1, true};
    case CUDA_C_8I:
      return {2, 1, true};
    case CUDA_R_32I:
      return {1, 4, true};
    default:
      return {};
  }
}

// Whether a scalar is zero; a negative zero is, too.
inline bool is_zero(const uint8_t* bits, const NumberType& type) {
  for (uint32_t i = 0; i < type.bytes(); ++i) {
    const bool sign = !type.integer && i % type.part_bytes == type.part_bytes - 1;
    if ((bits[i] & (sign ? 0x7f : 0xff)) != 0) return false;
  }
  return true;
}

}  // namespace reprise::sim::blas
