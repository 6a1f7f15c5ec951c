// The probe's kernels. Compiled by nvcc into the fat binary that the probe embeds, and for the host as twins of the
// simulated device: what only a GPU has stands under __CUDA_ARCH__.
#include <cstdint>

#ifndef __CUDACC__
#define __grid_constant__
#endif

namespace {

// What word `index` of a buffer holds in round `seed`.
__device__ inline uint32_t pattern(uint32_t seed, uint64_t index) {
  uint32_t x = seed * 2654435761u + static_cast<uint32_t>(index) * 40503u;
  x ^= x >> 15;
  return x * 2246822519u;
}

__device__ inline uint64_t first_index() { return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline uint64_t index_step() { return static_cast<uint64_t>(gridDim.x) * blockDim.x; }

struct Parameters4096 {
  uint8_t bytes[4088];
};

struct alignas(128) Opaque128 {
  uint8_t bytes[128];
};

}  // namespace

extern "C" {

__global__ void probe_empty() {}

// 4 KiB of parameters: the limit that every driver has.
__global__ void probe_large_parameters(uint32_t* out, Parameters4096 parameters) {
  if (out && first_index() == 0) *out = parameters.bytes[0];
}

// A first parameter that wants 128-byte alignment, as TMA kernels have it.
__global__ void probe_aligned_parameter(const __grid_constant__ Opaque128 descriptor, uint32_t* out) {
  if (out && first_index() == 0) *out = descriptor.bytes[0];
}

__global__ void probe_fill(uint32_t* words, uint64_t count, uint32_t seed) {
  for (uint64_t i = first_index(); i < count; i += index_step()) words[i] = pattern(seed, i);
}

// Adds the words that are not as probe_fill(seed) left them to *mismatches.
__global__ void probe_check(const uint32_t* words, uint64_t count, uint32_t seed, uint32_t* mismatches) {
  uint32_t wrong = 0;
  for (uint64_t i = first_index(); i < count; i += index_step()) wrong += words[i] != pattern(seed, i);
#ifdef __CUDA_ARCH__
  if (wrong) atomicAdd(mismatches, wrong);
#else
  *mismatches += wrong;
#endif
}

// Fills, but lets a dependent grid start before it has (programmatic dependent launch).
__global__ void probe_fill_early(uint32_t* words, uint64_t count, uint32_t seed) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  for (uint64_t i = first_index(); i < count; i += index_step()) words[i] = pattern(seed, i);
}

// Reads the words first, then waits for the grids it depends on, then checks: what a grid that was on the device before
// the writer finished sees through another range of addresses. `out` keeps the first reading alive.
__global__ void probe_check_early(const uint32_t* words, uint64_t count, uint32_t seed, uint32_t* mismatches,
                                  uint32_t* out) {
  uint32_t before = 0;
  for (uint64_t i = first_index(); i < count; i += index_step()) before ^= words[i];
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  uint32_t wrong = 0;
  for (uint64_t i = first_index(); i < count; i += index_step()) wrong += words[i] != pattern(seed, i);
#ifdef __CUDA_ARCH__
  if (wrong) atomicAdd(mismatches, wrong);
#else
  *mismatches += wrong;
#endif
  if (before == 0x9e3779b9u) *out = before;
}

// Bandwidth-bound: reads and writes every word once.
__global__ void probe_stream(const float* in, float* out, uint64_t count) {
  for (uint64_t i = first_index(); i < count; i += index_step()) out[i] = in[i] * 1.0001f + 0.5f;
}

// Reads every word once; the sum keeps the reading alive.
__global__ void probe_read(const uint32_t* words, uint64_t count, uint32_t* out) {
  uint32_t sum = 0;
  for (uint64_t i = first_index(); i < count; i += index_step()) sum += words[i];
  if (sum == 0x9e3779b9u) *out = sum;
}

// Compute-bound, as a matrix product is: `rounds` dependent multiply-adds on registers per thread.
__global__ void probe_compute(float* out, uint32_t rounds) {
  float a = static_cast<float>(threadIdx.x) * 0.001f, b = a + 1, c = a + 2, d = a + 3;
  for (uint32_t i = 0; i < rounds; ++i) {
    a = a * 0.999f + 0.1f;
    b = b * 0.998f + 0.2f;
    c = c * 0.997f + 0.3f;
    d = d * 0.996f + 0.4f;
  }
  out[first_index()] = a + b + c + d;
}

// Keeps one block busy for about `nanoseconds`; nothing on a simulated device.
__global__ void probe_spin(uint64_t nanoseconds) {
#ifdef __CUDA_ARCH__
  uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
#else
  (void)nanoseconds;
#endif
}

__global__ void probe_write(uint32_t* word, uint32_t value) {
  if (first_index() == 0) *word = value;
}

// Row-wise layer norm over rows of `width`, one block a row; sums in a fixed order.
__global__ void probe_layer_norm(const float* in, float* out, uint32_t width) {
  const float* row = in + static_cast<uint64_t>(blockIdx.x) * width;
  float sum = 0, squares = 0;
  for (uint32_t i = 0; i < width; ++i) {
    sum += row[i];
    squares += row[i] * row[i];
  }
  const float mean = sum / static_cast<float>(width);
  const float scale = 1.0f / (squares / static_cast<float>(width) - mean * mean + 1e-5f);
  for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
    out[static_cast<uint64_t>(blockIdx.x) * width + i] = (row[i] - mean) * scale;
  }
}

}  // extern "C"
