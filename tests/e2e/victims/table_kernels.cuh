// Kernels that build tables of addresses in memory and follow them.
#pragma once

__device__ inline unsigned here() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void fill(unsigned* x, unsigned seed, unsigned n) {
  if (here() < n) x[here()] = (here() * 2654435761u + seed) >> 7;
}

__global__ void mix(unsigned* to, const unsigned* a, const unsigned* b, unsigned n) {
  if (here() < n) to[here()] = a[here()] * 31u + b[n - 1 - here()];
}

__global__ void put(void** table, unsigned slot, void* target) {
  if (here() == 0) table[slot] = target;
}

__global__ void gather(unsigned* const* table, unsigned* to, unsigned count, unsigned n) {
  if (here() >= n) return;
  unsigned sum = 0;
  for (unsigned j = 0; j < count; ++j) sum += table[j] != nullptr ? table[j][here()] * (j + 1) : j;
  to[here()] = sum;
}

__global__ void scatter(unsigned* const* table, const unsigned* from, unsigned count, unsigned n) {
  if (here() >= n) return;
  for (unsigned j = 0; j < count; ++j) {
    if (table[j] != nullptr) table[j][here()] = table[j][here()] * 3u + from[here()] + j;
  }
}

// Two levels: each entry is a table of `inner` entries.
__global__ void gather_deep(unsigned* const* const* tables, unsigned* to, unsigned outer, unsigned inner, unsigned n) {
  if (here() >= n) return;
  unsigned sum = 0;
  for (unsigned k = 0; k < outer; ++k) {
    for (unsigned j = 0; j < inner; ++j) sum = sum * 5u + tables[k][j][here()];
  }
  to[here()] = sum;
}

// Named as those of a library whose kernels find buffers on their own: the address comes in two halves.
__global__ void ncclDevKernel_sum(unsigned low, unsigned high, unsigned* to, unsigned n) {
  const auto* from = reinterpret_cast<const unsigned*>(static_cast<size_t>(high) << 32 | low);
  if (here() < n) to[here()] += from[here()];
}

__global__ void set(unsigned* words, unsigned slot, unsigned value) {
  if (here() == 0) words[slot] = value;
}
