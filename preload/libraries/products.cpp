// cuBLAS's products of matrices and vectors (calls.def), and what gives a handle its workspace.
#include <initializer_list>

#include "preload/base/export.h"
#include "preload/base/runtime.h"
#include "preload/libraries/forward.h"
#include "preload/tracking/handle_map.h"

namespace reprise::libraries {
namespace {

constinit HandleMap workspaces;  // of the handles that were given one

enum class First : uint8_t { nothing, handle };

// Which of a function's words are addresses: a bit for each.
struct AddressWords {
  uint32_t read;
  uint32_t written;
  First first;
};

constexpr uint32_t bits(std::initializer_list<unsigned> words) {
  uint32_t set = 0;
  for (const unsigned word : words) set |= 1u << word;
  return set;
}

void add_operands(const AddressWords& addresses, const uint64_t* words, DeclaredOperands* operands) noexcept {
  for (uint32_t left = addresses.read; left != 0; left &= left - 1) operands->add_read(words[__builtin_ctz(left)]);
  for (uint32_t left = addresses.written; left != 0; left &= left - 1) {
    operands->add_written(words[__builtin_ctz(left)]);
  }
  if (addresses.first == First::handle) operands->add_written(workspaces.find(words[0]));
}

template <typename... Words>
uint64_t forward(WordFunction<Words...>* own, const AddressWords& addresses, Words... words) noexcept {
  if (own == nullptr) return kNotInitialized;
  if (watch_flags() == 0) return own(words...);
  const uint64_t all[] = {words...};
  DeclaredOperands operands;
  add_operands(addresses, all, &operands);
  const DeclaredCall declared = operands.call(true);
  const DeclaredScope scope(declared);
  return own(words...);
}

// What the library makes meanwhile is its own.
template <typename... Words>
uint64_t forward_own(WordFunction<Words...>* own, Words... words) noexcept {
  return forward(own, {0, 0, First::nothing}, words...);
}

}  // namespace
}  // namespace reprise::libraries

using namespace reprise;
using namespace reprise::libraries;

#define REPRISE_W(n) uint64_t w##n
#define REPRISE_TYPED_7 REPRISE_W(0), REPRISE_W(1), REPRISE_W(2), REPRISE_W(3), REPRISE_W(4), REPRISE_W(5), REPRISE_W(6)
#define REPRISE_NAMED_7 w0, w1, w2, w3, w4, w5, w6
#define REPRISE_TYPED_12 REPRISE_TYPED_7, REPRISE_W(7), REPRISE_W(8), REPRISE_W(9), REPRISE_W(10), REPRISE_W(11)
#define REPRISE_NAMED_12 REPRISE_NAMED_7, w7, w8, w9, w10, w11
#define REPRISE_TYPED_14 REPRISE_TYPED_12, REPRISE_W(12), REPRISE_W(13)
#define REPRISE_NAMED_14 REPRISE_NAMED_12, w12, w13
#define REPRISE_TYPED_17 REPRISE_TYPED_14, REPRISE_W(14), REPRISE_W(15), REPRISE_W(16)
#define REPRISE_NAMED_17 REPRISE_NAMED_14, w14, w15, w16
#define REPRISE_TYPED_18 REPRISE_TYPED_17, REPRISE_W(17)
#define REPRISE_NAMED_18 REPRISE_NAMED_17, w17
#define REPRISE_TYPED_19 REPRISE_TYPED_18, REPRISE_W(18)
#define REPRISE_NAMED_19 REPRISE_NAMED_18, w18
#define REPRISE_TYPED_23 REPRISE_TYPED_19, REPRISE_W(19), REPRISE_W(20), REPRISE_W(21), REPRISE_W(22)
#define REPRISE_NAMED_23 REPRISE_NAMED_19, w19, w20, w21, w22

#define REPRISE_BITS(...) bits({__VA_ARGS__})
#define REPRISE_LIBRARY_CALL(symbol, words, read, written, first)                             \
  REPRISE_EXPORT uint64_t symbol(REPRISE_TYPED_##words) {                                     \
    REPRISE_NEXT(symbol, uint64_t(REPRISE_TYPED_##words));                                    \
    constexpr AddressWords kAddresses{REPRISE_BITS read, REPRISE_BITS written, First::first}; \
    return forward(own, kAddresses, REPRISE_NAMED_##words);                                   \
  }
#include "preload/libraries/calls.def"

REPRISE_EXPORT uint64_t cublasSetWorkspace_v2(uint64_t handle, uint64_t workspace, uint64_t bytes) {
  REPRISE_NEXT(cublasSetWorkspace_v2, uint64_t(uint64_t, uint64_t, uint64_t));
  const uint64_t status = forward_own(own, handle, workspace, bytes);
  if (static_cast<int>(status) == 0) workspaces.set(handle, workspace);
  return status;
}

// Documented: the handle has its own workspace again.
REPRISE_EXPORT uint64_t cublasSetStream_v2(uint64_t handle, uint64_t stream) {
  REPRISE_NEXT(cublasSetStream_v2, uint64_t(uint64_t, uint64_t));
  workspaces.erase(handle);
  return forward_own(own, handle, stream);
}

REPRISE_EXPORT uint64_t cublasCreate_v2(uint64_t handle) {
  REPRISE_NEXT(cublasCreate_v2, uint64_t(uint64_t));
  return forward_own(own, handle);
}
