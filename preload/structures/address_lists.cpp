// Two lists of PyTorch's of which a launch uses as many entries as its grid is wide. The inputs of torch.cat
// (ATen/native/cuda/Shape.cu): for up to 128 of them address, offset, size and number of elements, whether it is
// contiguous, then sizes and strides for 4 dimensions, once or for each; block y works on input y. The output's sizes
// and strides are a structure of their own. And what lpnorm_cleanup (ATen/native/cuda/ForeachReduceOp.cu) takes:
// addresses alone; block x writes the x-th.
#include <initializer_list>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kMostInputs = 128;
constexpr uint32_t kCatDimensions = 4;
constexpr uint32_t kFewestAddresses = 64;
constexpr uint64_t kMostElements = uint64_t{1} << 40;

constexpr uint32_t cat_bytes(uint32_t inputs, uint32_t index_bytes, uint32_t strides) {
  const uint32_t lists = inputs * (8 + 3 * index_bytes + 1);
  const uint32_t aligned = (lists + index_bytes - 1) / index_bytes * index_bytes;
  return (aligned + strides * 2 * kCatDimensions * index_bytes + 7) / 8 * 8;
}

bool all_live(const uint8_t* content, uint32_t count, const Words& words) noexcept {
  for (uint32_t i = 0; i < count; ++i) {
    if (!words.live(load<uint64_t>(content + i * 8))) return false;
  }
  return true;
}

}  // namespace

Structure cat_inputs_of(uint32_t bytes) noexcept {
  for (uint32_t inputs = 16; inputs <= kMostInputs; inputs *= 2) {
    for (const uint32_t index_bytes : {4u, 8u}) {
      for (const uint32_t strides : {1u, inputs}) {
        if (bytes == cat_bytes(inputs, index_bytes, strides)) {
          return {Kind::cat_inputs, 0, bytes, 1, inputs, 0, 0, 0, index_bytes};
        }
      }
    }
  }
  return {};
}

uint32_t ranges_of_cat_inputs(const Structure& structure, const uint8_t* content, Grid grid, const Words& words,
                              Range* ranges) noexcept {
  const uint32_t index_bytes = structure.number_bytes;
  if (grid.y == 0 || grid.y > structure.capacity || !all_live(content, grid.y, words)) return 0;
  const uint8_t* const elements = content + structure.capacity * (8 + 2 * index_bytes);
  const uint8_t* const contiguous = elements + structure.capacity * index_bytes;
  for (uint32_t i = 0; i < grid.y; ++i) {
    const uint8_t* const at = elements + i * index_bytes;
    const uint64_t count = index_bytes == 4 ? load<uint32_t>(at) : load<uint64_t>(at);
    if (count == 0 || count > kMostElements || contiguous[i] > 1) return 0;
  }
  ranges[0] = {0, grid.y * 8};
  return 1;
}

Structure cat_output_of(uint32_t bytes) noexcept {
  for (const uint32_t index_bytes : {4u, 8u}) {
    if (bytes == 2 * kCatDimensions * index_bytes) return {Kind::cat_output, 0, bytes, 0, 0, 0, 0, 0, index_bytes};
  }
  return {};
}

// Numbers by its type; only as many are set as there are dimensions. What is left of it is a range without a word.
uint32_t ranges_of_cat_output(const Structure& structure, const uint8_t* content, Range* ranges) noexcept {
  const uint64_t size = structure.number_bytes == 4 ? load<uint32_t>(content) : load<uint64_t>(content);
  if (size == 0 || size > kMostElements) return 0;
  ranges[0] = {0, 0};
  return 1;
}

Structure addresses_of(uint32_t bytes) noexcept {
  if (bytes % 8 != 0 || bytes < kFewestAddresses * 8) return {};
  return {Kind::addresses, 0, bytes, 1, bytes / 8, 0, 0, 0, 0};
}

uint32_t ranges_of_addresses(const Structure& structure, const uint8_t* content, Grid grid, const Words& words,
                             Range* ranges) noexcept {
  if (grid.x == 0 || grid.x > structure.capacity || !all_live(content, grid.x, words)) return 0;
  ranges[0] = {0, grid.x * 8};
  return 1;
}

}  // namespace reprise::structures
