// Kernels of every habit that an examination must tell apart. One element a thread.
#pragma once

__device__ inline int element() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void scale(const float* from, float* to) { to[element()] = 1.5f * from[element()]; }

__global__ void accumulate(const float* from, float* into) { into[element()] += from[element()]; }

// Leaves the second half of its output as it was.
__global__ void first_half(const float* from, float* to, int count) {
  if (element() < count / 2) to[element()] = from[element()] + 1.0f;
}

__global__ void clear(float* to) { to[element()] = 0.0f; }

__global__ void shift(const float* from, const float* bias, float* to) {
  to[element()] = from[element()] + bias[element()];
}

__global__ void gather(const int* index, const float* from, float* to) { to[element()] = from[index[element()]]; }

// With a rate of zero it leaves everything as it was.
__global__ void step(float* weights, const float* gradients, float rate) {
  weights[element()] -= rate * gradients[element()];
}

// Every launch counts.
__global__ void count(unsigned* counter, float* to) {
  to[element()] = static_cast<float>(*counter) + static_cast<float>(element());
  if (element() == 0) *counter += 1;
}

__global__ void add_in_place(float* both, const float* other) { both[element()] = both[element()] + other[element()]; }

// Its operands stand in a table.
__global__ void by_table(float* const* table) { table[1][element()] += table[0][element()]; }

// As products that several blocks share: partial sums and, behind them, a semaphore in one workspace. It waits until
// the semaphore is free, and leaves it free.
__global__ void split(const float* from, float* workspace, float* to, int count) {
  const volatile int* const semaphore = reinterpret_cast<const volatile int*>(workspace + count - 32);
  while (*semaphore != 0) {
  }
  if (element() < count / 2) workspace[element()] = from[element()] + 2.0f;
  to[element()] = from[element()] * 3.0f;
}

// Waits for a number that is there already, and takes no other one.
__global__ void waits(const float* number, float* to) {
  while (*static_cast<const volatile float*>(number) != 1.25f) {
  }
  to[element()] = 4.0f * number[element()];
}
