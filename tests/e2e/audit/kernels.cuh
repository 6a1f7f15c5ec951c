// Kernels that touch their operands alone, and some that touch more, or write what they were never seen to write. One
// word a thread.
#pragma once

constexpr unsigned long long kCode = 0x5a5a5a5a5a5a5a5aull;  // what is coded with it looks like no address
constexpr unsigned kLarge = 1u << 16;                        // words

__device__ inline unsigned word() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline unsigned mixed(unsigned a, unsigned b) {
  return (a ^ (b + 0x9E3779B9u + (a << 6) + (a >> 2))) * 2654435761u;
}

__global__ void mix(const unsigned* a, const unsigned* b, unsigned* to) { to[word()] = mixed(a[word()], b[word()]); }

__global__ void update(unsigned* weights, const unsigned* gradients) {
  weights[word()] = mixed(weights[word()], gradients[word()]);
}

// Reads a tensor whose address is coded in memory.
__global__ void follow(const unsigned long long* coded, unsigned* to) {
  to[word()] = mixed(to[word()], reinterpret_cast<const unsigned*>(coded[0] ^ kCode)[word()]);
}

// ... and so does this now and then, which a program has that was changed after its audit.
__global__ void later(const unsigned long long* coded, unsigned* to, unsigned now) {
  to[word()] = mixed(to[word()] + 1, now == 0 ? 0 : reinterpret_cast<const unsigned*>(coded[0] ^ kCode)[word()]);
}

__global__ void make_table(unsigned long long* table, unsigned* target) {
  if (word() == 0) table[1] = reinterpret_cast<unsigned long long>(target);
}

__global__ void by_table(const unsigned long long* table, unsigned* to) {
  to[word()] = mixed(to[word()], reinterpret_cast<const unsigned*>(table[1])[word()]);
}

// Writes what it reads, too, where there is much of it.
__global__ void touch(unsigned* from, unsigned* to, unsigned count) {
  to[word()] = mixed(from[word()], count);
  if (count >= kLarge && word() == 7) from[7] = mixed(from[7], count);
}
