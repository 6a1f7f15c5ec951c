// Kernels of the runtime programs of this folder: compiled by nvcc, and for the host as twins (twins.cpp).
#pragma once
#include <cstddef>

__device__ inline size_t at() { return blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; }

__global__ void fill(float* x, size_t n, unsigned seed) {
  const size_t i = at();
  if (i < n) x[i] = static_cast<float>((i * 2654435761u + seed) % 1009) / 1009.f;
}

__global__ void axpy(float* y, const float* x, float a, size_t n) {
  const size_t i = at();
  if (i < n) y[i] = a * x[i] + 0.5f * y[i];
}

__global__ void mix(float* out, const float* a, const float* b, size_t n) {
  const size_t i = at();
  if (i < n) out[i] = a[i] * 0.5f - b[n - 1 - i] * 0.25f;
}

__global__ void mix3(float* out, const float* a, const float* b, const float* c, size_t n) {
  const size_t i = at();
  if (i < n) out[i] = a[i] * 0.5f - b[n - 1 - i] * 0.25f + c[i] * 0.125f;
}

__global__ void put(float** table, int slot, float* pointer) {
  if (at() == 0) table[slot] = pointer;
}

__global__ void gather(float* const* table, float* out, int count, size_t n) {
  const size_t i = at();
  if (i >= n) return;
  float sum = 0;
  for (int j = 0; j < count; ++j) sum += table[j][i] * static_cast<float>(j + 1);
  out[i] = sum * 0.01f;
}

__global__ void scatter(float* const* table, const float* x, int count, size_t n) {
  const size_t i = at();
  if (i >= n) return;
  for (int j = 0; j < count; ++j) table[j][i] = 0.5f * table[j][i] + x[i] * static_cast<float>(j + 1);
}

struct Node {
  Node* next;
  float* data;
};

__global__ void gather_list(const Node* head, float* out, size_t n) {
  const size_t i = at();
  if (i >= n) return;
  float sum = 0;
  for (const Node* node = head; node != nullptr; node = node->next) sum = sum * 0.5f + node->data[i];
  out[i] = sum;
}

// `lowered` is the pointer less `bias` elements.
__global__ void add_biased(const float* lowered, float* out, size_t bias, size_t n) {
  const size_t i = at();
  if (i < n) out[i] += lowered[bias + i] * 0.25f;
}

__global__ void add_split(unsigned low, unsigned high, float* out, size_t n) {
  const size_t i = at();
  const auto* x = reinterpret_cast<const float*>((static_cast<unsigned long long>(high) << 32) | low);
  if (i < n) out[i] += x[i] * 0.25f;
}

struct Packed {
  unsigned tag;
  unsigned pointer[2];  // aligned to 4 bytes
};

__global__ void add_packed(Packed packed, float* out, size_t n) {
  const size_t i = at();
  const unsigned long long address = (static_cast<unsigned long long>(packed.pointer[1]) << 32) | packed.pointer[0];
  if (i < n) out[i] += reinterpret_cast<const float*>(address)[i] * 0.25f;
}
