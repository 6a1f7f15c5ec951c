// Hashes that the recorder, the iteration finder and the replay's matcher must agree on. Header only, no allocation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "preload/trace/format.h"

namespace reprise::trace {

// Mixes one word into a running hash (multiply and fold; the constants are those of the 64-bit golden ratio and of
// Knuth's MMIX multiplier).
inline uint64_t hash_mix(uint64_t hash, uint64_t word) noexcept {
  const unsigned __int128 product =
      static_cast<unsigned __int128>(hash ^ (word * 6364136223846793005ull)) * 0x9e3779b97f4a7c15ull;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ word;
}

// Hash of bytes, used for checksums and names; the same on every machine of the same endianness.
inline uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0x243f6a8885a308d3ull) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = hash_mix(seed, size);
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = hash_mix(hash, word);
    bytes += 8;
    size -= 8;
  }
  uint64_t tail = 0;
  if (size > 0) std::memcpy(&tail, bytes, size);
  return hash_mix(hash, tail ^ (static_cast<uint64_t>(size) << 56));
}

// The first part of op_signature(), which the hash of a launch's shape begins with, too.
// function_hash is hash_bytes() of the kernel's mangled name (0 for non-launches).
inline uint64_t grid_signature(OpKind op, uint64_t function_hash, const uint32_t grid[3],
                               const uint32_t block[3]) noexcept {
  uint64_t hash = hash_mix(0x13198a2e03707344ull, static_cast<uint64_t>(op));
  hash = hash_mix(hash, function_hash);
  hash = hash_mix(hash, (static_cast<uint64_t>(grid[0]) << 32) | grid[1]);
  hash = hash_mix(hash, (static_cast<uint64_t>(grid[2]) << 32) | block[0]);
  return hash_mix(hash, (static_cast<uint64_t>(block[1]) << 32) | block[2]);
}

// What makes two ops "the same call" in two iterations: everything but addresses, parameter values and streams. Order
// is what the program's calls say each time, whatever stream they say it of.
inline uint64_t op_signature(uint64_t grid_signature, uint32_t shared_bytes, uint64_t size,
                             uint32_t access_count) noexcept {
  const uint64_t hash = hash_mix(grid_signature, static_cast<uint64_t>(shared_bytes) << 32);
  return hash_mix(hash, hash_mix(size, access_count));
}
inline uint64_t op_signature(OpKind op, uint64_t function_hash, const uint32_t grid[3], const uint32_t block[3],
                             uint32_t shared_bytes, uint64_t size, uint32_t access_count) noexcept {
  return op_signature(grid_signature(op, function_hash, grid, block), shared_bytes, size, access_count);
}

// What is left of an op's signature where sizes differ from one iteration to the next: kernels may, too, for libraries
// choose them by size. `named`: operands, of a launch those that its parameters name.
inline uint64_t op_structure(OpKind op, uint64_t signature, uint32_t named) noexcept {
  switch (op) {
    case OpKind::graph_launch:
    case OpKind::host_function:
    case OpKind::other:
      return signature;
    default:
      return hash_mix(0xc0ac29b7c97c50ddull, (static_cast<uint64_t>(named) << 16) | static_cast<uint64_t>(op));
  }
}

// Signatures of calls that are not ops, so that a whole iteration is one sequence of 64-bit words.
inline uint64_t allocate_signature(Origin origin, uint64_t size) noexcept {
  return hash_mix(hash_mix(0xa4093822299f31d0ull, static_cast<uint64_t>(origin)), size);
}
inline uint64_t free_signature(Origin origin, uint64_t size) noexcept {
  return hash_mix(hash_mix(0x082efa98ec4e6c89ull, static_cast<uint64_t>(origin)), size);
}

// Likewise of an allocation or a free.
inline uint64_t allocate_structure(Origin origin) noexcept { return allocate_signature(origin, UINT64_MAX); }
inline uint64_t free_structure(Origin origin) noexcept { return free_signature(origin, UINT64_MAX); }

}  // namespace reprise::trace
