// What PyTorch's reduce_kernel takes (ReduceOp in ATen/native/cuda/Reduce.cuh, with indices of 32 bits): the reduction,
// its first value and its configuration; offset calculators (strided.cpp) of one operand for the input and of two for
// the output, each set for the dimensions there are; then the addresses of the input, of two outputs (the second is set
// where there are two) and of three buffers, an index, two flags and the number of outputs.
#include "preload/structures/kinds.h"

namespace reprise::structures {
namespace {

constexpr uint32_t kTailBytes = 64;
constexpr uint32_t kSecondOutputAt = 16;  // in the tail
constexpr uint32_t kOutputsAt = kTailBytes - 4;
constexpr uint32_t kCalculators = calculator_bytes(1) + calculator_bytes(2);
constexpr uint32_t kConfigurationBytes = 64;  // at least

bool are_calculators(const uint8_t* at) noexcept {
  const uint32_t inputs = load<uint32_t>(at);
  const uint32_t outputs = load<uint32_t>(at + calculator_bytes(1));
  return inputs + outputs > 0 && is_calculator(at) && is_calculator(at + calculator_bytes(1));
}

}  // namespace

Structure reduce_of(uint32_t bytes) noexcept {
  if (bytes % 8 != 0 || bytes < kConfigurationBytes + kCalculators + kTailBytes) return {};
  return {Kind::reduce, 0, bytes, 0, 0, 0, 0, 0, 0};
}

uint32_t ranges_of_reduce(const Structure& structure, const uint8_t* content, const Words& words,
                          Range* ranges) noexcept {
  const uint32_t tail = structure.bytes - kTailBytes;
  // The tail is aligned to 8 bytes, the calculators to 4.
  const uint32_t close = tail - kCalculators;
  const bool at_close = are_calculators(content + close);
  if (at_close == are_calculators(content + close - 4)) return 0;
  const uint32_t begin = at_close ? close : close - 4;
  const uint32_t outputs = load<uint32_t>(content + tail + kOutputsAt);
  if (outputs != 1 && outputs != 2) return 0;
  for (uint32_t i = 0; i <= outputs; ++i) {
    if (!words.live(load<uint64_t>(content + tail + i * 8))) return 0;
  }
  ranges[0] = {0, (begin + 7) / 8 * 8};
  const uint32_t first_buffer = tail + kSecondOutputAt + 8;
  ranges[1] = {tail, outputs == 2 ? first_buffer : first_buffer - 8};
  ranges[2] = {first_buffer, structure.bytes};
  return 3;
}

}  // namespace reprise::structures
