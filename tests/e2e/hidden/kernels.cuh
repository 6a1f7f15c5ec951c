// Kernels that build tables of pointers, and that read and write tensors through them: compiled by nvcc, and for the
// host as twins (twins.cpp). Integers, so that each lost byte changes all that follows.
#pragma once
#include "tests/e2e/hidden/table.h"

namespace hidden {

__device__ inline uint32_t mixed(uint32_t a, uint32_t b) {
  return (a ^ (b + 0x9E3779B9u + (a << 6) + (a >> 2))) * 2654435761u;
}

__device__ inline uint32_t* pointee(const Table& table, uint32_t j) {
  return reinterpret_cast<uint32_t*>(load(table, j));
}

__device__ inline bool now(const When& when) {
  return *when.counter >= when.first && *when.counter % when.period == when.phase;
}

}  // namespace hidden

#define EACH_WORD(i, words) \
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)

extern "C" {

__global__ void put(hidden::Table table, uint32_t j, uint64_t pointer) {
  if (blockIdx.x + threadIdx.x == 0) hidden::store(table, table.base, j, pointer);
}

__global__ void put_range(hidden::Table table, uint64_t first, uint64_t step) {
  if (blockIdx.x + threadIdx.x != 0) return;
  for (uint32_t j = 0; j < table.count; ++j) hidden::store(table, table.base, j, first + j * step);
}

__global__ void copy_table(hidden::Table to, hidden::Table from) {
  if (blockIdx.x + threadIdx.x != 0) return;
  for (uint32_t j = 0; j < to.count; ++j) hidden::store(to, to.base, j, hidden::load(from, j));
}

// Writes everything and reads nothing of what it reaches.
__global__ void fill_hidden(hidden::Table table, hidden::When when, uint32_t words, uint32_t salt) {
  if (!hidden::now(when)) return;
  EACH_WORD(i, words) {
    for (uint32_t j = 0; j < table.count; ++j) hidden::pointee(table, j)[i] = hidden::mixed(salt + j, i);
  }
}

__global__ void gather(hidden::Table table, hidden::When when, uint32_t* out, uint32_t words, uint32_t salt) {
  const bool now = hidden::now(when);
  EACH_WORD(i, words) {
    uint32_t sum = hidden::mixed(out[i], salt);
    for (uint32_t j = 0; now && j < table.count; ++j) sum = hidden::mixed(sum, hidden::pointee(table, j)[i]);
    out[i] = sum;
  }
}

__global__ void scatter(hidden::Table table, hidden::When when, const uint32_t* in, uint32_t words, uint32_t salt) {
  if (!hidden::now(when)) return;
  EACH_WORD(i, words) {
    for (uint32_t j = 0; j < table.count; ++j) {
      uint32_t* const to = hidden::pointee(table, j);
      to[i] = hidden::mixed(to[i] + salt, in[i] + j);
    }
  }
}

// out[j]: a hash of what entry j points to.
__global__ void digest_hidden(hidden::Table table, uint64_t* out, uint32_t words) {
  const uint32_t j = blockIdx.x;
  if (threadIdx.x != 0 || j >= table.count) return;
  uint64_t hash = 1469598103934665603ull;
  for (uint32_t i = 0; i < words; ++i) hash = (hash ^ hidden::pointee(table, j)[i]) * 1099511628211ull;
  out[j] = hash;
}

__global__ void count_up(uint32_t* counter) {
  if (blockIdx.x + threadIdx.x == 0) ++*counter;
}

__global__ void mix2(uint32_t* a, const uint32_t* b, uint32_t words, uint32_t salt) {
  EACH_WORD(i, words) a[i] = hidden::mixed(a[i] + salt, b[i]);
}

__global__ void mix3(uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t words, uint32_t salt) {
  EACH_WORD(i, words) a[i] = hidden::mixed(hidden::mixed(a[i] + salt, b[i]), c[i]);
}

}  // extern "C"
