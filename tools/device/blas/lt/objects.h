// What cuBLASLt's opaque descriptors are, made of the rows of attributes.def. Callers: the entry points of
// libcublasLt.so.13.
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <cstring>

namespace reprise::sim::blas::lt {

#define LAYOUT(...)
#define DESCRIPTION(...)
#define PREFERENCE(...)
#define ALGORITHM(...)
#define DEFAULT_ONLY(...)

#undef LAYOUT
#define LAYOUT(attribute, type, field, value) type field = value;
struct Layout {
#include "tools/device/blas/lt/attributes.def"
};
#undef LAYOUT
#define LAYOUT(...)

#undef DESCRIPTION
#define DESCRIPTION(attribute, type, field, value) type field = value;
struct Description {
#include "tools/device/blas/lt/attributes.def"
};
#undef DESCRIPTION
#define DESCRIPTION(...)

#undef PREFERENCE
#define PREFERENCE(attribute, type, field, value) type field = value;
struct Preference {
#include "tools/device/blas/lt/attributes.def"
};
#undef PREFERENCE
#define PREFERENCE(...)

#undef ALGORITHM
#define ALGORITHM(attribute, type, field, value) type field = value;
struct Algorithm {
#include "tools/device/blas/lt/attributes.def"
};

#undef LAYOUT
#undef DESCRIPTION
#undef PREFERENCE
#undef ALGORITHM
#undef DEFAULT_ONLY

static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

// The algorithm that its opaque form holds: programs copy that as bytes.
inline Algorithm load(const cublasLtMatmulAlgo_t& opaque) {
  Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), &opaque, sizeof algorithm);
  return algorithm;
}
inline void store(const Algorithm& algorithm, cublasLtMatmulAlgo_t& opaque) {
  std::memset(&opaque, 0, sizeof opaque);
  std::memcpy(&opaque, &algorithm, sizeof algorithm);
}

}  // namespace reprise::sim::blas::lt
