// Kernels by handle: name, parameter layout, trace id, module, and which launch shapes have been issued. Built at the
// first launch (loads may be invisible), read without locks afterwards, never freed. Callers: launch and module hooks,
// graphs.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "preload/structures/structures.h"
#include "preload/trace/format.h"
#include "preload/tracking/module_image.h"

namespace reprise {

struct Global {
  CUdeviceptr address;
  uint64_t size;
};

// A module or a library: what its kernels may touch although no parameter names it.
struct Owner {
  static constexpr uint32_t kMaxGlobals = 64;
  // All its variables whose addresses the program did not ask for, as one resource: the id of an allocation without an
  // address. 0: its image was seen, and has no variables.
  std::atomic<uint64_t> variables{0};
  // Likewise what all kernels that print share: standard output, where their lines have an order.
  std::atomic<uint64_t> output{0};
  std::atomic<uint64_t> code{0};  // ImageTraits::code
  std::atomic<uint32_t> global_count{0};
  Global globals[kMaxGlobals] = {};
};

struct Function {
  uint32_t id = 0;         // trace id, from 1
  uint64_t name_hash = 0;  // hash_bytes of the name
  const char* name = "";   // mangled
  bool layout_known = false;
  uint32_t parameter_count = 0;
  uint32_t parameter_bytes = 0;  // end of the last parameter
  const trace::ParameterLayout* parameters = nullptr;
  bool opaque = false;                // by name (opaque_kernels.def): reaches memory that no parameter names
  structures::Structures structures;  // that it takes by value, those that are known
  Owner* owner = nullptr;             // nullptr: out of memory
  uint64_t identity = 0;              // of its code and parameters, in all programs; 0: not known
};

// The kernel behind a CUfunction or a CUkernel that was cast to one. nullptr only when out of memory or with a null
// handle.
const Function* find_function(CUfunction handle) noexcept;

// The call that made a handle tells which of the two kinds it is, and its owner (CUmodule or CUlibrary as a number; 0:
// the driver is to be asked).
void insert_function_handle(CUfunction handle, uint64_t owner) noexcept;
void insert_kernel_handle(CUkernel handle, uint64_t owner) noexcept;

// The module or library was loaded, and its image was seen.
void record_image(uint64_t owner, const ImageTraits& traits) noexcept;
// `module` is the library's in some context: it has the library's variables.
void record_module_of(uint64_t library, uint64_t module) noexcept;
// The owner that a handle was inserted with; 0: none.
uint64_t owner_of_handle(const void* handle) noexcept;

// A variable of a module (CUmodule or CUlibrary as a number). true: it is new.
bool insert_global(uint64_t owner, CUdeviceptr address, uint64_t size) noexcept;

// The module or library goes away: its handles mean nothing any more. Visits its globals.
void forget_owner(uint64_t owner, void (*visit)(const Global& global)) noexcept;

// Has a launch of this function and shape succeeded before? (false, too, for a shape that the full table has no room
// for)
bool shape_known(uint64_t shape) noexcept;
void mark_shape_known(uint64_t shape) noexcept;

}  // namespace reprise
