// The 8-byte words of a range of host memory that lie in a range of addresses: how pointer tables are found in bytes of
// any size. Two comparisons a word, eight words at a time. Callers: pointees, looks, the benchmark of scanning.
#pragma once
#include <cstdint>

#include "preload/tracking/allocations.h"

namespace reprise {

// Called with the word and its offset from `data`.
using VisitWord = void (*)(void* user, uint64_t offset, uint64_t word);

// Looks at the words at the offsets first, first + 8, ... that end within `bytes`. `write_combined`: memory that is
// slow to read in the ordinary way.
void find_words(const void* data, uint64_t bytes, uint64_t first, const AddressRange& range, bool write_combined,
                VisitWord visit, void* user) noexcept;

}  // namespace reprise
