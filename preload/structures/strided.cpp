// What PyTorch's elementwise_kernel captures where its operands are not contiguous
// (ATen/cuda/detail/OffsetCalculator.cuh): the number of dimensions, for 25 of them the size as a divisor with what
// makes dividing by it cheap (12 bytes each), for 25 of them the stride of each operand (4 bytes each), then the
// operands' addresses, then the functor. Newer versions set no more than the dimensions there are. What gather and
// scatter capture (ATen/native/cuda/ScatterGatherKernel.cu) begins alike: behind the strides stand the index's address,
// a number, a functor without a content, the output's address, two numbers, and the source's address or, where a number
// is scattered, that number.
#include <initializer_list>

#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kDivisorsAt = 4;
constexpr uint32_t kDivisorBytes = 12;
constexpr uint32_t kMostOperands = 6;

// Of gather and scatter, from addresses_at() on.
constexpr uint32_t kGatheredIndexAt = 0;
constexpr uint32_t kGatheredOutputAt = 24;
constexpr uint32_t kGatheredSourceAt = 48;
constexpr uint32_t kGatheredBytes = 56;
constexpr uint32_t kWithSource = 3;  // operands: output, source, index; without one output and index

constexpr uint32_t addresses_at(uint32_t operands) { return (calculator_bytes(operands) + 7) / 8 * 8; }

// Division by multiplying and shifting, as Granlund and Montgomery have it: the shift is the smallest whose power is
// not below the divisor, and the factor follows from both.
bool is_divisor(const uint8_t* at) noexcept {
  const uint64_t divisor = load<uint32_t>(at);
  const uint32_t factor = load<uint32_t>(at + 4);
  const uint32_t shift = load<uint32_t>(at + 8);
  if (divisor == 0 || divisor > INT32_MAX || shift > 31) return false;
  const uint64_t power = uint64_t{1} << shift;
  if (power < divisor) return false;
  return factor == (uint64_t{1} << 32) * (power - divisor) / divisor + 1;
}

}  // namespace

// The functor behind the addresses is small, so the size tells how many operands there are.
Structure strided_of(uint32_t bytes) noexcept {
  Structure structure;
  for (uint32_t operands = 1; operands <= kMostOperands; ++operands) {
    if (addresses_at(operands) + operands * 8 > bytes) break;
    structure = {Kind::strided, 0, bytes, operands, 0, 0, 0, 0, 0};
  }
  return structure;
}

bool is_calculator(const uint8_t* content) noexcept {
  const uint32_t dimensions = load<uint32_t>(content);
  if (dimensions > kMostDimensions) return false;
  for (uint32_t i = 0; i < dimensions; ++i) {
    if (!is_divisor(content + kDivisorsAt + i * kDivisorBytes)) return false;
  }
  return true;
}

uint32_t ranges_of_strided(const Structure& structure, const uint8_t* content, const Words& words,
                           Range* ranges) noexcept {
  // Without a size there is nothing to know it by.
  if (load<uint32_t>(content) == 0 || !is_calculator(content)) return 0;
  const uint32_t data = addresses_at(structure.lists);
  for (uint32_t operand = 0; operand < structure.lists; ++operand) {
    if (!words.live(load<uint64_t>(content + data + operand * 8))) return 0;
  }
  ranges[0] = {data, structure.bytes};
  return 1;
}

Structure gathered_of(uint32_t bytes) noexcept {
  for (const uint32_t operands : {kWithSource - 1, kWithSource}) {
    if (bytes == addresses_at(operands) + kGatheredBytes) return {Kind::gathered, 0, bytes, operands, 0, 0, 0, 0, 0};
  }
  return {};
}

uint32_t ranges_of_gathered(const Structure& structure, const uint8_t* content, const Words& words,
                            Range* ranges) noexcept {
  if (load<uint32_t>(content) == 0 || !is_calculator(content)) return 0;
  const uint32_t data = addresses_at(structure.lists);
  uint32_t count = 0;
  for (const uint32_t at : {kGatheredIndexAt, kGatheredOutputAt, kGatheredSourceAt}) {
    if (at == kGatheredSourceAt && structure.lists != kWithSource) break;
    if (!words.live(load<uint64_t>(content + data + at))) return 0;
    ranges[count++] = {data + at, data + at + 8};
  }
  return count;
}

}  // namespace reprise::structures
