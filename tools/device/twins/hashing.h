// Dataflow hashing: what a kernel without a twin does. Every argument tensor is overwritten with bytes that depend on
// the kernel, its shape, its other parameters and the content of all its argument tensors, and on nothing else. So a
// byte that was lost, stale or out of order changes everything computed from it. Caller: the executor.
//
// Exactly: a word of the parameters is each 8 bytes at a multiple of 8 from the first parameter that lie in one
// parameter (in the whole blob where the layout is not known). A word that points into an allocation of the program
// that was live when it called, or just behind the last byte of one that another word points into, names it as an
// argument tensor. The hash H mixes, in this order: the kernel's name; grid, block and shared bytes; for every
// parameter its words that name a tensor as (place of the word, number of the tensor by first mention, offset in it,
// its size), and those other bytes that are sure to be set (parameter_kinds.h), addresses of other memory among them as
// one and the same; for every tensor, by number, where the program has written it and the content there. Tensor i then
// becomes the stream of words that H and i generate, and is written. A kernel whose code is known
// (modules/kernel_code.h) reads and writes only what that says; natures.h draws it for others. So neither addresses
// enter, nor what the memory held before, nor padding: results are equal in each run and under another layout of
// memory. Of structures that are known (preload/structures) only the words that may be addresses count. What can still
// make results differ is an address that a structure of an unknown kind holds in a part that nobody set.
#pragma once
#include <cstdint>

#include "tools/device/twins/executor.h"

namespace reprise::sim {

void hash_kernel(const KernelRun& run);

// Of all launches so far: bytes of the parameters, and those of them that entered a hash.
struct HashedShare {
  uint64_t parameter_bytes;
  uint64_t hashed_bytes;
};
HashedShare hashed_share() noexcept;

// Hash of a tensor's content, and the stream that replaces it. Four words at a time.
uint64_t hash_content(const void* data, uint64_t bytes);
void fill_content(void* data, uint64_t bytes, uint64_t seed);

}  // namespace reprise::sim
