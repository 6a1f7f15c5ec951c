// The digest of a tensor's bytes: 128 bits, the sum over all of its 8-byte words of two mixes of the word and its
// place. Sums do not depend on the order of blocks, so any grid computes the same. A word that differs alone always
// changes the first sum, because its mix is a bijection of the word; more of them change neither sum with a chance of
// about 2^-128. Compiled by nvcc into the fat binary that the replay embeds, and for the host as the twin of the
// simulated device.
#include <cstdint>

namespace {

// Multiplications by odd numbers and xors with what was shifted right, as in the finalizer of MurmurHash3 (A. Appleby),
// over a word that its place was added to: each step can be undone.
__device__ inline uint64_t mix(uint64_t word, uint64_t place) {
  uint64_t x = word + (place + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

__device__ inline uint64_t mix_again(uint64_t x) {
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

// Up to 7 bytes behind the last whole word, zeros above them.
__device__ inline uint64_t last_word(const unsigned char* bytes, uint64_t count) {
  uint64_t word = 0;
  for (uint64_t i = 0; i < count; ++i) word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return word;
}

}  // namespace

extern "C" {

// Two sums a cell; the host's Digests hands the cells out.
__device__ unsigned long long reprise_digest_sums[2 * 4096];

// Adds the digest of `bytes` bytes at `begin`, which is aligned to 8 and whose first word has this place in the tensor,
// to the sums of `cell`.
__global__ void reprise_digest(const unsigned char* begin, unsigned long long bytes, unsigned long long place,
                               unsigned cell) {
  const auto* const words = reinterpret_cast<const uint64_t*>(begin);
  const uint64_t count = bytes / 8;
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
#ifdef __CUDA_ARCH__
  // Neighbouring threads read neighbouring words.
  const uint64_t first = thread, last = count, step = threads;
#else
  // A host runs one thread after the other: each has words that lie together.
  const uint64_t share = (count + threads - 1) / threads;
  const uint64_t first = thread * share, last = first + share < count ? first + share : count, step = 1;
#endif
  uint64_t one = 0;
  uint64_t two = 0;
  for (uint64_t i = first; i < last; i += step) {
    const uint64_t mixed = mix(words[i], place + i);
    one += mixed;
    two += mix_again(mixed);
  }
  if (thread == 0 && bytes % 8 != 0) {
    const uint64_t mixed = mix(last_word(begin + count * 8, bytes % 8), place + count);
    one += mixed;
    two += mix_again(mixed);
  }
#ifdef __CUDA_ARCH__
  for (int width = 16; width > 0; width /= 2) {
    one += __shfl_xor_sync(0xffffffffu, one, width);
    two += __shfl_xor_sync(0xffffffffu, two, width);
  }
  if (threadIdx.x % 32 != 0) return;
#endif
  atomicAdd(&reprise_digest_sums[2 * cell], static_cast<unsigned long long>(one));
  atomicAdd(&reprise_digest_sums[2 * cell + 1], static_cast<unsigned long long>(two));
}

// Tells the host, at an address of its own: no copy, which would wait behind the transfers that the link is busy with,
// and the stream's next kernel behind it.
__global__ void reprise_digest_tell(unsigned cell, unsigned long long* to) {
  to[0] = reprise_digest_sums[2 * cell];
  to[1] = reprise_digest_sums[2 * cell + 1];
}

}  // extern "C"
