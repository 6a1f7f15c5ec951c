// PyTorch's view of one tensor (ATen/cuda/detail/TensorInfo.cuh), which older kernels take for each operand: its
// address, sizes and strides for 25 dimensions, and how many of these are set.
#include <initializer_list>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kSizesAt = 8;
constexpr uint64_t kLargestSize = uint64_t{1} << 40;

constexpr uint32_t bytes_of(uint32_t index_bytes) {
  return (kSizesAt + kMostDimensions * 2 * index_bytes + 4 + 7) / 8 * 8;
}

uint64_t index_at(const uint8_t* at, uint32_t index_bytes) {
  return index_bytes == 4 ? load<uint32_t>(at) : load<uint64_t>(at);
}

// As its constructor leaves it, without a size or stride, or as collapsing its dimensions makes it: one of size and
// stride 1.
bool is_of_no_tensor(const uint8_t* content, uint32_t dimensions, uint32_t index_bytes) {
  if (dimensions != 1) return dimensions == 0;
  const uint8_t* const sizes = content + kSizesAt;
  return index_at(sizes, index_bytes) == 1 && index_at(sizes + kMostDimensions * index_bytes, index_bytes) == 1;
}

}  // namespace

Structure tensor_info_of(uint32_t bytes) noexcept {
  for (const uint32_t index_bytes : {4u, 8u}) {
    if (bytes == bytes_of(index_bytes)) return {Kind::tensor_info, 0, bytes, 1, 0, 0, 0, 0, index_bytes};
  }
  return {};
}

uint32_t ranges_of_tensor_info(const Structure& structure, const uint8_t* content, const Words& words,
                               Range* ranges) noexcept {
  const uint32_t index_bytes = structure.number_bytes;
  const uint32_t dimensions = load<uint32_t>(content + kSizesAt + kMostDimensions * 2 * index_bytes);
  const uint64_t address = load<uint64_t>(content);
  if (address == 0 && is_of_no_tensor(content, dimensions, index_bytes)) {
    ranges[0] = {0, kSizesAt};
    return 1;
  }
  if (dimensions == 0 || dimensions > kMostDimensions) return 0;  // without a size there is nothing to know it by
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t size = index_at(content + kSizesAt + i * index_bytes, index_bytes);
    if (size == 0 || size > kLargestSize) return 0;
  }
  if (!words.live(address)) return 0;
  ranges[0] = {0, kSizesAt};
  return 1;
}

}  // namespace reprise::structures
