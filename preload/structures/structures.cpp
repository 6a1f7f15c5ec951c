#include "preload/structures/structures.h"

#include <cstring>

#include "preload/structures/kinds.h"

namespace reprise::structures {

Structure recognize(const char* name, const trace::ParameterLayout* parameters, uint32_t count) noexcept {
  Structure structure;
  if (std::strstr(name, "multi_tensor_apply_kernel") != nullptr && count > 0) {
    structure = tensor_lists_of(name, parameters[0].bytes);
    structure.offset = parameters[0].offset;
  } else if (std::strstr(name, "18elementwise_kernelILi") != nullptr && count == 2) {
    structure = strided_of(parameters[1].bytes);
    structure.offset = parameters[1].offset;
  }
  // The scan looks at words of the parameter space, so these must be the structure's own.
  return structure.offset % 8 == 0 ? structure : Structure{};
}

uint32_t used_ranges(const Structure& structure, const uint8_t* parameters, uint32_t grid_x,
                     bool (*is_address)(void* user, uint64_t word), void* user, Range* ranges) noexcept {
  uint32_t count = 0;
  switch (structure.kind) {
    case Kind::unknown:
      return 0;
    case Kind::tensor_lists:
      count = ranges_of_lists(structure, parameters + structure.offset, grid_x, ranges);
      break;
    case Kind::strided:
      count = ranges_of_strided(structure, parameters + structure.offset, is_address, user, ranges);
      break;
  }
  for (uint32_t i = 0; i < count; ++i) {
    ranges[i].begin += structure.offset;
    ranges[i].end += structure.offset;
  }
  return count;
}

}  // namespace reprise::structures
