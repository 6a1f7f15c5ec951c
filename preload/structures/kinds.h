// The known kinds, each in a file of its own: is a structure of this name and size one, and where are the addresses of
// one launch? Offsets count from the structure's start. Caller: structures.cpp.
#pragma once
#include "preload/structures/structures.h"

namespace reprise::structures {

Structure tensor_lists_of(const char* name, uint32_t bytes) noexcept;
uint32_t ranges_of_lists(const Structure& structure, const uint8_t* content, uint32_t grid_x, Range* ranges) noexcept;

Structure strided_of(uint32_t bytes) noexcept;
uint32_t ranges_of_strided(const Structure& structure, const uint8_t* content,
                           bool (*is_address)(void* user, uint64_t word), void* user, Range* ranges) noexcept;

template <typename Value>
Value load(const uint8_t* at) noexcept {
  Value value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace reprise::structures
