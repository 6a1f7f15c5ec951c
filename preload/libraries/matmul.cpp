// cublasLtMatmul: its operands are arguments and attributes of the description. A description or matrix that was given
// an attribute which attributes.def does not know may lead to tables of addresses: then nothing is said of the product.
#include "preload/base/export.h"
#include "preload/base/runtime.h"
#include "preload/libraries/forward.h"
#include "preload/tracking/handle_map.h"

namespace reprise::libraries {
namespace {

enum class Kind : uint8_t { unknown, number, address };
constexpr uint64_t kAttributes = 64;  // of either sort, at most
constexpr uint64_t kBatchMode = 8;    // of a matrix; 0: at equal distances

struct Kinds {
  Kind of[kAttributes] = {};
  constexpr bool knows(uint64_t attribute) const { return attribute < kAttributes && of[attribute] != Kind::unknown; }
};

constexpr Kinds kinds_of_products() {
  Kinds kinds;
#define REPRISE_PRODUCT_ATTRIBUTE(name, number, kind) kinds.of[number] = Kind::kind;
#define REPRISE_MATRIX_ATTRIBUTE(name, number, kind)
#include "preload/libraries/attributes.def"
#undef REPRISE_PRODUCT_ATTRIBUTE
#undef REPRISE_MATRIX_ATTRIBUTE
  return kinds;
}
constexpr Kinds kinds_of_matrices() {
  Kinds kinds;
#define REPRISE_PRODUCT_ATTRIBUTE(name, number, kind)
#define REPRISE_MATRIX_ATTRIBUTE(name, number, kind) kinds.of[number] = Kind::kind;
#include "preload/libraries/attributes.def"
#undef REPRISE_PRODUCT_ATTRIBUTE
#undef REPRISE_MATRIX_ATTRIBUTE
  return kinds;
}
constexpr Kinds kProduct = kinds_of_products();
constexpr Kinds kMatrix = kinds_of_matrices();

constinit HandleMap unknown;  // descriptions and matrices with an attribute that is not known

using Attribute = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t);
using ReadAttribute = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

uint64_t set(Attribute* own, const Kinds& kinds, uint64_t described, uint64_t attribute, uint64_t at,
             uint64_t bytes) noexcept {
  if (own == nullptr) return kNotInitialized;
  if (!kinds.knows(static_cast<uint32_t>(attribute))) unknown.set(described, 1);
  return own(described, attribute, at, bytes);
}

// 0 where the library, an older one, does not know the attribute: then nothing can have set it.
uint64_t attribute_of(ReadAttribute* read, uint64_t described, uint64_t attribute, uint64_t bytes) noexcept {
  uint64_t value = 0;
  uint64_t written = 0;
  const uint64_t status =
      read(described, attribute, reinterpret_cast<uint64_t>(&value), bytes, reinterpret_cast<uint64_t>(&written));
  return static_cast<int>(status) == 0 ? value : 0;
}

struct Described {
  uint64_t product;
  uint64_t matrices[4];
};

// The library has not checked the descriptions yet, so each may be a null pointer: then nothing is said of the product.
bool add_described(ReadAttribute* of_product, ReadAttribute* of_matrix, const Described& what,
                   DeclaredOperands* operands) noexcept {
  if (of_product == nullptr || of_matrix == nullptr || what.product == 0 || unknown.find(what.product) != 0)
    return false;
  for (const uint64_t matrix : what.matrices) {
    if (matrix == 0 || unknown.find(matrix) != 0) return false;
    if (attribute_of(of_matrix, matrix, kBatchMode, sizeof(uint32_t)) != 0) return false;
  }
  for (uint64_t attribute = 0; attribute < kAttributes; ++attribute) {
    if (kProduct.of[attribute] != Kind::address) continue;
    operands->add_written(attribute_of(of_product, what.product, attribute, sizeof(uint64_t)));
  }
  return true;
}

}  // namespace
}  // namespace reprise::libraries

using namespace reprise;
using namespace reprise::libraries;

REPRISE_EXPORT uint64_t cublasLtMatmulDescSetAttribute(uint64_t product, uint64_t attribute, uint64_t at,
                                                       uint64_t bytes) {
  REPRISE_NEXT(cublasLtMatmulDescSetAttribute, Attribute);
  return set(own, kProduct, product, attribute, at, bytes);
}

REPRISE_EXPORT uint64_t cublasLtMatrixLayoutSetAttribute(uint64_t matrix, uint64_t attribute, uint64_t at,
                                                         uint64_t bytes) {
  REPRISE_NEXT(cublasLtMatrixLayoutSetAttribute, Attribute);
  return set(own, kMatrix, matrix, attribute, at, bytes);
}

REPRISE_EXPORT uint64_t cublasLtMatmulDescDestroy(uint64_t product) {
  REPRISE_NEXT(cublasLtMatmulDescDestroy, uint64_t(uint64_t));
  unknown.erase(product);
  return own == nullptr ? kNotInitialized : own(product);
}

REPRISE_EXPORT uint64_t cublasLtMatrixLayoutDestroy(uint64_t matrix) {
  REPRISE_NEXT(cublasLtMatrixLayoutDestroy, uint64_t(uint64_t));
  unknown.erase(matrix);
  return own == nullptr ? kNotInitialized : own(matrix);
}

REPRISE_EXPORT uint64_t cublasLtCreate(uint64_t handle) {
  REPRISE_NEXT(cublasLtCreate, uint64_t(uint64_t));
  if (own == nullptr) return kNotInitialized;
  const DeclaredCall nothing{nullptr, 0, true};
  const DeclaredScope scope(nothing);
  return own(handle);
}

REPRISE_EXPORT uint64_t cublasLtMatmul(uint64_t handle, uint64_t product, uint64_t alpha, uint64_t a, uint64_t a_matrix,
                                       uint64_t b, uint64_t b_matrix, uint64_t beta, uint64_t c, uint64_t c_matrix,
                                       uint64_t d, uint64_t d_matrix, uint64_t algorithm, uint64_t workspace,
                                       uint64_t workspace_bytes, uint64_t stream) {
  using Matmul = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  REPRISE_NEXT(cublasLtMatmul, Matmul);
  if (own == nullptr) return kNotInitialized;
  const auto forward = [&] {
    return own(handle, product, alpha, a, a_matrix, b, b_matrix, beta, c, c_matrix, d, d_matrix, algorithm, workspace,
               workspace_bytes, stream);
  };
  if (watch_flags() == 0) return forward();
  static std::atomic<void*> of_product{nullptr};
  static std::atomic<void*> of_matrix{nullptr};
  const void* const caller = __builtin_return_address(0);
  DeclaredOperands operands;
  for (const uint64_t address : {a, b, alpha, beta}) operands.add_read(address);
  for (const uint64_t address : {c, d, workspace}) operands.add_written(address);
  const bool described = add_described(next<ReadAttribute>(of_product, "cublasLtMatmulDescGetAttribute", caller),
                                       next<ReadAttribute>(of_matrix, "cublasLtMatrixLayoutGetAttribute", caller),
                                       {product, {a_matrix, b_matrix, c_matrix, d_matrix}}, &operands);
  const DeclaredCall declared = operands.call(described);
  const DeclaredScope scope(declared);
  return forward();
}
