// Module images as the hooks on loads see them: what orders their kernels besides the memory that parameters name?
// Callers: the module hooks, functions.
#pragma once
#include <cstdint>

namespace reprise {

struct ImageTraits {
  bool variables = true;  // kernels may pass each other data in one whose address the program never asks for
  bool prints = false;    // and lines on stdout have an order
  // Hash of its code, of all devices; 0: not known, or its kernels share a heap.
  uint64_t code = 0;
  uint32_t architecture = 0;  // of the devices that it is of; 0: of several kinds
};

// `image`: what cuModuleLoadData or cuLibraryLoadData just accepted. The default where it cannot be parsed, or where
// memory is short.
ImageTraits traits_of_image(const void* image) noexcept;
ImageTraits traits_of_file(const char* path) noexcept;

}  // namespace reprise
