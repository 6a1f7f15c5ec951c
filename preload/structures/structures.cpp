#include "preload/structures/structures.h"

#include <cstring>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

// Of the parameter `index` of `count`, which has `bytes`.
Structure kind_of(const char* name, uint32_t index, uint32_t count, uint32_t bytes) noexcept {
  const auto names = [name](const char* part) { return std::strstr(name, part) != nullptr; };
  if (names("multi_tensor_apply_kernel")) return index == 0 ? tensor_lists_of(name, bytes) : Structure{};
  if (names("18elementwise_kernelILi")) return index == 1 && count == 2 ? strided_of(bytes) : Structure{};
  if (names("34_scatter_gather_elementwise_kernelI"))
    return index == 1 && count == 2 ? gathered_of(bytes) : Structure{};
  if (names("13reduce_kernelILi")) return index == 0 && count == 1 ? reduce_of(bytes) : Structure{};
  if (names("25CatArrInputTensorMetadataI")) {
    if (index == 2 && names("16TensorSizeStrideI")) return cat_output_of(bytes);
    return index == 1 ? cat_inputs_of(bytes) : Structure{};
  }
  if (names("22PyTorchMemEffAttention")) return count == 1 ? attention_of(name, bytes) : Structure{};
  if (names("14lpnorm_cleanupI") && names("19TensorListAddresses"))
    return index == 1 ? addresses_of(bytes) : Structure{};
  if (names("6detail10TensorInfoI")) return tensor_info_of(bytes);
  return {};
}

}  // namespace

Structures recognize(const char* name, const trace::ParameterLayout* parameters, uint32_t count) noexcept {
  Structures found;
  for (uint32_t i = 0; i < count && found.count < kMostStructures; ++i) {
    Structure structure = kind_of(name, i, count, parameters[i].bytes);
    structure.offset = parameters[i].offset;
    // The scan looks at words of the parameter space, so these must be the structure's own.
    if (structure.kind != Kind::unknown && structure.offset % 8 == 0) found.items[found.count++] = structure;
  }
  return found;
}

uint32_t used_ranges(const Structure& structure, const uint8_t* parameters, Grid grid,
                     bool (*is_address)(void* user, uint64_t word), void* user, Range* ranges) noexcept {
  const uint8_t* const content = parameters + structure.offset;
  const Words words{is_address, user};
  uint32_t count = 0;
  switch (structure.kind) {
    case Kind::unknown:
      return 0;
    case Kind::tensor_lists:
      count = ranges_of_lists(structure, content, grid, ranges);
      break;
    case Kind::strided:
      count = ranges_of_strided(structure, content, words, ranges);
      break;
    case Kind::gathered:
      count = ranges_of_gathered(structure, content, words, ranges);
      break;
    case Kind::tensor_info:
      count = ranges_of_tensor_info(structure, content, words, ranges);
      break;
    case Kind::reduce:
      count = ranges_of_reduce(structure, content, words, ranges);
      break;
    case Kind::cat_inputs:
      count = ranges_of_cat_inputs(structure, content, grid, words, ranges);
      break;
    case Kind::cat_output:
      count = ranges_of_cat_output(structure, content, ranges);
      break;
    case Kind::attention:
      count = ranges_of_attention(structure, content, words, ranges);
      break;
    case Kind::addresses:
      count = ranges_of_addresses(structure, content, grid, words, ranges);
      break;
  }
  for (uint32_t i = 0; i < count; ++i) {
    ranges[i].begin += structure.offset;
    ranges[i].end += structure.offset;
  }
  return count;
}

UnsetParts unset_parts(const Structures& structures, const uint8_t* parameters, uint32_t parameter_bytes, Grid grid,
                       bool (*is_address)(void* user, uint64_t word), void* user) noexcept {
  UnsetParts unset;
  for (uint32_t i = 0; i < structures.count; ++i) {
    const Structure& structure = structures.items[i];
    Range used[kMostRanges];
    if (structure.offset + structure.bytes > parameter_bytes) continue;
    const uint32_t count = used_ranges(structure, parameters, grid, is_address, user, used);
    if (count == 0) continue;
    uint32_t begin = structure.offset;
    for (uint32_t range = 0; range < count; ++range) {
      if (used[range].begin > begin) unset.parts[unset.count++] = {begin, used[range].begin};
      begin = used[range].end > begin ? used[range].end : begin;
    }
    unset.parts[unset.count++] = {begin, structure.offset + structure.bytes};
  }
  return unset;
}

}  // namespace reprise::structures
