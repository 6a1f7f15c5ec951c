// A table of pointers in memory and the ways in which its entries may be written down. The same code on the host, which
// makes images of tables, and in kernels, which build and read them (kernels.cuh; tables.cpp).
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define HIDDEN_BOTH __host__ __device__
#else
#define HIDDEN_BOTH
#endif

namespace hidden {

enum Coding : uint32_t {
  kPlain,
  kXored,
  kBiased,
  kSplit,     // all low halves, then all high ones
  kPacked,    // above 16 bits of flags
  kList,      // nodes: address of the next one, then the pointer
  kIndirect,  // the address of a plain table
  kCodings
};

struct Table {
  unsigned char* base;
  uint32_t count;
  uint32_t stride;
  uint32_t offset;  // of entry 0; may be odd
  uint32_t coding;
  uint64_t key;
};

// Pointers are followed in some iterations only; the launch looks the same in all.
struct When {
  const uint32_t* counter;  // of iterations, in device memory
  uint32_t period, phase, first;
};

HIDDEN_BOTH inline uint64_t read_bytes(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}

HIDDEN_BOTH inline void write_bytes(unsigned char* at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(value >> (8 * i));
}

// Entry `j` of a table that `memory` holds: where it lies, or an image of it.
HIDDEN_BOTH inline void store(const Table& table, unsigned char* memory, uint32_t j, uint64_t pointer) {
  unsigned char* const at = memory + table.offset + j * table.stride;
  const auto base = reinterpret_cast<uint64_t>(table.base);
  switch (table.coding) {
    case kXored:
      return write_bytes(at, pointer ^ table.key, 8);
    case kBiased:
      return write_bytes(at, pointer - table.key, 8);
    case kSplit:
      write_bytes(at, pointer, 4);
      return write_bytes(at + table.count * table.stride, pointer >> 32, 4);
    case kPacked:
      return write_bytes(at, pointer << 16 | (table.key & 0xFFFF), 8);
    case kList:
      write_bytes(at, j + 1 < table.count ? base + table.offset + (j + 1) * table.stride : 0, 8);
      return write_bytes(at + 8, pointer, 8);
    default:
      return write_bytes(at, pointer, 8);
  }
}

HIDDEN_BOTH inline uint64_t load(const Table& table, uint32_t j) {
  const unsigned char* at = table.base + table.offset + j * table.stride;
  switch (table.coding) {
    case kXored:
      return read_bytes(at, 8) ^ table.key;
    case kBiased:
      return read_bytes(at, 8) + table.key;
    case kSplit:
      return read_bytes(at, 4) | read_bytes(at + table.count * table.stride, 4) << 32;
    case kPacked:
      return read_bytes(at, 8) >> 16;
    case kList:
      at = table.base + table.offset;
      while (j-- > 0) at = reinterpret_cast<const unsigned char*>(read_bytes(at, 8));
      return read_bytes(at + 8, 8);
    case kIndirect:
      return read_bytes(reinterpret_cast<const unsigned char*>(read_bytes(table.base + table.offset, 8)) + 8 * j, 8);
    default:
      return read_bytes(at, 8);
  }
}

}  // namespace hidden
