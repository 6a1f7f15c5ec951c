// Which bytes of a kernel's parameters are sure to be set by whoever launches it. A scalar's are; a structure that is
// passed by value may have padding and unset parts, whose bytes are what the stack held. Caller: hashing.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/device/twins/executor.h"

namespace reprise::sim {

// Of one parameter, from its start: bytes [first, last) are values. Words that are addresses count besides.
struct SetBytes {
  uint32_t first = 0;
  uint32_t last = 0;
};

// One for each parameter of the kernel. By the types in its mangled name, where it has one (of structures those that
// are listed in parameter_kinds.cpp); a kernel with a plain name takes scalars where the sizes are those of scalars.
const std::vector<SetBytes>& set_bytes(const KernelImage& kernel);

// The types of the parameters in a mangled name, as the demangler writes them; empty: it says nothing about them.
std::vector<std::string> parameter_types(const std::string& mangled);

}  // namespace reprise::sim
