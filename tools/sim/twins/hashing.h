// Dataflow hashing: what a kernel without a twin does. Every argument tensor is overwritten with bytes that depend on
// the kernel, its shape, its other parameters and the content of all its argument tensors, and on nothing else. So a
// byte that was lost, stale or out of order changes everything computed from it. Caller: the executor.
//
// Exactly: a word of the parameters is each 8 bytes at a multiple of 8 from the first parameter that lie in one
// parameter (in the whole blob where the layout is not known). A word that points into a recorded extent, or just
// behind its last byte, names that extent as an argument tensor. The hash H mixes, in this order: the kernel's name;
// grid, block and shared bytes; for every parameter its bytes, where a word that names a tensor counts as (number of
// the tensor by first mention, offset in it, its size); for every tensor, by number, its content. Tensor i then becomes
// the stream of words that H and i generate. Addresses do not enter, so results are equal under another layout of
// memory. Of structures that are known (preload/structures) only the words that may be addresses count. Two things can
// still make results differ: padding inside another structure that a kernel takes by value, and pointers to memory that
// has no recorded extent (module globals, memory that was freed).
#pragma once
#include <cstdint>

#include "tools/sim/twins/executor.h"

namespace reprise::sim {

void hash_kernel(const KernelRun& run, ExtentLookup extents);

// Hash of a tensor's content, and the stream that replaces it. Four words at a time.
uint64_t hash_content(const void* data, uint64_t bytes);
void fill_content(void* data, uint64_t bytes, uint64_t seed);

}  // namespace reprise::sim
