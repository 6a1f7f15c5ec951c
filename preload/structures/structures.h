// Structures that kernels take by value and of which only a part is set: the rest is what the caller's memory held, old
// addresses among it, and would look like accesses. Known by the kernel's name and the structure's size; its content
// must then be as expected, too, or every word counts. Callers: the scan of launches, the simulated device's hashing.
#pragma once
#include <cstdint>

#include "preload/trace/format.h"

namespace reprise::structures {

enum class Kind : uint8_t {
  unknown,       // every word may be an address
  tensor_lists,  // PyTorch's multi_tensor_apply: lists of addresses, and which block works on which of them
  strided,       // PyTorch's elementwise_kernel: sizes and strides for 25 dimensions, then one address for each operand
  gathered,      // PyTorch's gather and scatter: the same, then addresses and numbers
  tensor_info,   // PyTorch's TensorInfo: an address, then sizes and strides for 25 dimensions
  reduce,        // PyTorch's reduce_kernel: sizes and strides for two times 25 dimensions, then addresses
  cat_inputs,    // PyTorch's torch.cat: room for addresses, of which block y uses the y-th
  cat_output,    // ... and sizes and strides of its output, for 4 dimensions: no addresses
  addresses,     // PyTorch's lpnorm_cleanup: room for addresses, of which block x uses the x-th
  attention,     // PyTorch's memory-efficient attention: addresses, then numbers and room between them
};

// One parameter of a kernel. Offsets are those of the parameter space; bytes of all kinds.
struct Structure {
  Kind kind = Kind::unknown;
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint32_t lists = 0;         // of addresses; strided and gathered: operands
  uint32_t capacity = 0;      // tensors that a list has room for
  uint32_t steps_at = 0;      // of a fused optimizer's list of step counters, from the structure's start; 0: none
  uint32_t blocks = 0;        // most blocks of a launch
  uint32_t tensor_of_at = 0;  // where the numbers of the blocks' tensors begin
  uint32_t number_bytes = 0;  // of those; tensor_info and cat_inputs: of an index
};

// Words [begin, end) of the parameter space, in bytes.
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Range&) const = default;
};
inline constexpr uint32_t kMostRanges = 8;

inline constexpr uint32_t kMostStructures = 8;

// Those that one kernel takes.
struct Structures {
  uint32_t count = 0;
  Structure items[kMostStructures];

  // The one that is the parameter at `offset`; nullptr: it is none that is known.
  const Structure* find(uint32_t offset) const noexcept {
    for (uint32_t i = 0; i < count; ++i) {
      if (items[i].offset == offset) return &items[i];
    }
    return nullptr;
  }
};

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
};

// The structures that a kernel of this (mangled) name and layout takes.
Structures recognize(const char* name, const trace::ParameterLayout* parameters, uint32_t count) noexcept;

// Where this launch may hold addresses that the kernel uses. Returns how many ranges; 0: the content is not what it
// should be, and addresses may be anywhere in it. `is_address`: of memory that is live.
uint32_t used_ranges(const Structure& structure, const uint8_t* parameters, Grid grid,
                     bool (*is_address)(void* user, uint64_t word), void* user, Range* ranges) noexcept;

// Parts of a launch's parameters that its structures leave unset: what stands there is no address.
struct UnsetParts {
  uint32_t count = 0;
  Range parts[kMostStructures * (kMostRanges + 1)];

  // The word at `at`, in bytes.
  bool holds(uint32_t at) const noexcept {
    for (uint32_t i = 0; i < count; ++i) {
      if (parts[i].begin <= at && at + 8 <= parts[i].end) return true;
    }
    return false;
  }
};
UnsetParts unset_parts(const Structures& structures, const uint8_t* parameters, uint32_t parameter_bytes, Grid grid,
                       bool (*is_address)(void* user, uint64_t word), void* user) noexcept;

}  // namespace reprise::structures
