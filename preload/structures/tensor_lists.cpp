// PyTorch's lists for one launch over many tensors (ATen/native/cuda/MultiTensorApply.cuh, since 1.9; the large form
// since 2.1). In this order: for each list room for `capacity` addresses; the tensors' sizes, 8 bytes each; of a fused
// optimizer the addresses of its step counters; of a list with scalars those; for each block the number of its tensor
// and that of its chunk; in most, where the launch starts. Tensors are numbered from 0 in the order of the blocks, so
// the last block's number tells how many of the addresses are set.
#include <cstdlib>
#include <cstring>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kMostLists = 5;
constexpr uint32_t kAddressBytes = 8;
constexpr uint32_t kSizeBytes = 8;
constexpr uint32_t kChunkBytes = 4;
constexpr uint32_t kStartBytes = 4;

struct Form {
  uint32_t capacity[kMostLists];  // by number of lists
  uint32_t capacity_with_scalars[kMostLists];
  uint32_t blocks;
  uint32_t number_bytes;
};
constexpr Form kForms[] = {{{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
                           {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2}};

constexpr uint32_t aligned(uint32_t bytes) { return (bytes + 7) / 8 * 8; }

// The number behind "Li" after `tag`; 0: there is none.
uint32_t lists_after(const char* name, const char* tag) noexcept {
  const char* at = std::strstr(name, tag);
  if (at == nullptr) return 0;
  at = std::strstr(at + std::strlen(tag), "Li");
  const long lists = at == nullptr ? 0 : std::strtol(at + 2, nullptr, 10);
  return lists >= 1 && lists <= kMostLists ? static_cast<uint32_t>(lists) : 0;
}

// With `more` bytes for each tensor (scalars) and, for fused ones, room for as many counters as `counters`.
bool fits(const Form& form, uint32_t lists, uint32_t capacity, uint32_t more, uint32_t counters, uint32_t start,
          uint32_t bytes, Structure* structure) noexcept {
  const uint32_t head = capacity * (lists * kAddressBytes + kSizeBytes);
  const uint32_t numbers = head + counters * kAddressBytes + capacity * more;
  if (aligned(numbers + form.blocks * (form.number_bytes + kChunkBytes) + start) != bytes) return false;
  *structure = {Kind::tensor_lists, 0, bytes, lists, capacity, counters > 0 ? head : 0, form.blocks, numbers,
                form.number_bytes};
  return true;
}

}  // namespace

Structure tensor_lists_of(const char* name, uint32_t bytes) noexcept {
  Structure found;
  for (const Form& form : kForms) {
    if (const uint32_t lists = lists_after(name, "32FusedOptimizerTensorListMetadataI"); lists != 0) {
      const uint32_t counters = form.capacity_with_scalars[lists - 1];
      if (fits(form, lists, form.capacity[lists - 1], 0, counters, kStartBytes, bytes, &found)) return found;
    } else if (const uint32_t plain = lists_after(name, "18TensorListMetadataI"); plain != 0) {
      if (fits(form, plain, form.capacity[plain - 1], 0, 0, kStartBytes, bytes, &found)) return found;
    } else if (const uint32_t scalars = lists_after(name, "28TensorListScalarListMetadataI"); scalars != 0) {
      for (uint32_t scalar = 1; scalar <= 16; scalar *= 2) {
        if (fits(form, scalars, form.capacity_with_scalars[scalars - 1], scalar, 0, 0, bytes, &found)) return found;
      }
    }
  }
  return found;
}

uint32_t ranges_of_lists(const Structure& structure, const uint8_t* content, Grid grid, Range* ranges) noexcept {
  const uint32_t grid_x = grid.x;
  if (grid_x == 0 || grid_x > structure.blocks) return 0;
  uint32_t last = 0;
  for (uint32_t block = 0; block < grid_x; ++block) {
    const uint8_t* at = content + structure.tensor_of_at + block * structure.number_bytes;
    const uint32_t tensor = structure.number_bytes == 1 ? *at : load<uint16_t>(at);
    if (block == 0 ? tensor != 0 : tensor != last && tensor != last + 1) return 0;
    last = tensor;
  }
  if (last >= structure.capacity) return 0;
  uint32_t count = 0;
  for (uint32_t list = 0; list < structure.lists; ++list) {
    const uint32_t begin = list * structure.capacity * kAddressBytes;
    ranges[count++] = {begin, begin + (last + 1) * kAddressBytes};
  }
  if (structure.steps_at != 0) {
    ranges[count++] = {structure.steps_at, structure.steps_at + (last + 1) * kAddressBytes};
  }
  return count;
}

}  // namespace reprise::structures
