// What the kernels of PyTorch's memory-efficient attention take (AttentionKernel and AttentionBackwardKernel in
// ATen/native/transformers/cuda/mem_eff_attention): addresses, then numbers with room between them that nothing sets,
// and in the midst the state of the random numbers, which holds two addresses where a graph is captured.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kMostParts = 3;
constexpr uint32_t kSurely = 3;  // the first addresses: query, key and value

// Of the state: seed and offset, each a number or an address, another number, and a flag that says which.
constexpr uint32_t kRandomAddresses = 16;
constexpr uint32_t kCapturedAt = 24;

struct AttentionLayout {
  const char* name;
  uint32_t bytes;
  Range addresses[kMostParts];  // the rest holds numbers; unused ones are empty
  uint32_t random_at;
};
constexpr AttentionLayout kLayouts[] = {
    {"15AttentionKernelI", 280, {{0, 56}, {64, 88}, {264, 280}}, 232},
    {"23AttentionBackwardKernelI", 480, {{0, 136}, {}, {}}, 232},
};

const AttentionLayout* layout_of(uint32_t bytes) noexcept {
  const auto* const found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                         [bytes](const AttentionLayout& layout) { return layout.bytes == bytes; });
  return found != std::end(kLayouts) ? found : nullptr;
}

}  // namespace

Structure attention_of(const char* name, uint32_t bytes) noexcept {
  const AttentionLayout* const layout = layout_of(bytes);
  if (layout == nullptr || std::strstr(name, layout->name) == nullptr) return {};
  return {Kind::attention, 0, bytes, 0, 0, 0, 0, 0, 0};
}

uint32_t ranges_of_attention(const Structure& structure, const uint8_t* content, const Words& words,
                             Range* ranges) noexcept {
  const AttentionLayout* const layout = layout_of(structure.bytes);
  const uint8_t captured = content[layout->random_at + kCapturedAt];
  if (captured > 1) return 0;
  uint32_t count = 0;
  for (const Range& part : layout->addresses) {
    // Behind the state stand addresses of host memory, too.
    for (uint32_t at = part.begin; at < part.end && at < layout->random_at; at += 8) {
      const auto word = load<uint64_t>(content + at);
      if (!words.live(word) && (word != 0 || at < kSurely * 8)) return 0;
    }
    if (part.begin < part.end) ranges[count++] = part;
  }
  if (captured == 1) ranges[count++] = {layout->random_at, layout->random_at + kRandomAddresses};
  return count;
}

}  // namespace reprise::structures
