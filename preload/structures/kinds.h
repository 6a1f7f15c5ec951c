// The known kinds, each in a file of its own: is a structure of this name and size one, and where are the addresses of
// one launch? Offsets count from the structure's start. Caller: structures.cpp.
#pragma once
#include "preload/structures/structures.h"

namespace reprise::structures {

// Which words are addresses of memory that is live.
struct Words {
  bool (*is_address)(void* user, uint64_t word);
  void* user;
  bool live(uint64_t word) const noexcept { return is_address(user, word); }
};

Structure tensor_lists_of(const char* name, uint32_t bytes) noexcept;
uint32_t ranges_of_lists(const Structure& structure, const uint8_t* content, Grid grid, Range* ranges) noexcept;

Structure strided_of(uint32_t bytes) noexcept;
uint32_t ranges_of_strided(const Structure& structure, const uint8_t* content, const Words& words,
                           Range* ranges) noexcept;

Structure gathered_of(uint32_t bytes) noexcept;
uint32_t ranges_of_gathered(const Structure& structure, const uint8_t* content, const Words& words,
                            Range* ranges) noexcept;

Structure tensor_info_of(uint32_t bytes) noexcept;
uint32_t ranges_of_tensor_info(const Structure& structure, const uint8_t* content, const Words& words,
                               Range* ranges) noexcept;

Structure reduce_of(uint32_t bytes) noexcept;
uint32_t ranges_of_reduce(const Structure& structure, const uint8_t* content, const Words& words,
                          Range* ranges) noexcept;

Structure cat_inputs_of(uint32_t bytes) noexcept;
uint32_t ranges_of_cat_inputs(const Structure& structure, const uint8_t* content, Grid grid, const Words& words,
                              Range* ranges) noexcept;

Structure cat_output_of(uint32_t bytes) noexcept;
uint32_t ranges_of_cat_output(const Structure& structure, const uint8_t* content, Range* ranges) noexcept;

Structure attention_of(const char* name, uint32_t bytes) noexcept;
uint32_t ranges_of_attention(const Structure& structure, const uint8_t* content, const Words& words,
                             Range* ranges) noexcept;

Structure addresses_of(uint32_t bytes) noexcept;
uint32_t ranges_of_addresses(const Structure& structure, const uint8_t* content, Grid grid, const Words& words,
                             Range* ranges) noexcept;

inline constexpr uint32_t kMostDimensions = 25;  // of a tensor, in PyTorch's structures

// An offset calculator of indices of 32 bits and this many operands (strided.cpp): its size, and whether the content is
// one's.
constexpr uint32_t calculator_bytes(uint32_t operands) {
  return 4 + kMostDimensions * 12 + kMostDimensions * operands * 4;
}
bool is_calculator(const uint8_t* content) noexcept;

template <typename Value>
Value load(const uint8_t* at) noexcept {
  Value value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace reprise::structures
