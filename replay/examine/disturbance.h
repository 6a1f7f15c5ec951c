// Which bytes of an operand may be others when a launch is tried again. A counter, an offset or a semaphore that is
// changed makes a kernel wait for good, or fault: cuBLAS keeps them beside partial sums in one workspace. Pure. Caller:
// Trials.
//
//     word                                     what a trial puts there
//     changed by the launch                    a pattern
//     left as it was, looks like a number      the same with other last bits
//     left as it was, zero or anything else    what was there
//     any, where the launch has counted        what was there before the launch
#pragma once
#include <cstdint>

namespace reprise::replay {

// Does most of it look like floating-point numbers? Of a small integer, an index or an address the highest byte of
// every word, or of every second one, is 0 or 255.
bool looks_like_numbers(const unsigned char* bytes, uint64_t size) noexcept;

// Copies `from`, the words that look like numbers with their bits of `pattern` turned. Returns how many those are.
uint64_t disturb_words(unsigned char* to, const unsigned char* from, uint64_t size, uint32_t pattern) noexcept;

// An operand around the launch that is tried again.
struct AroundLaunch {
  const unsigned char* before;
  const unsigned char* after;
  uint64_t size;  // bytes
};

// Are there small integers among what the launch has changed, in a piece of 32 bytes that has nothing else, or where
// nearly all else are floats, of which none is so small? Among arbitrary bits one is there by chance, and where all
// bytes of the operand are 0 or 1 they are no counts but a mask.
bool has_counted(const AroundLaunch& launch) noexcept;

// Fills `to` as drawn above, of a launch that has not counted. False: there is a line of 128 bytes in which nothing is
// other than before, so that it is not known whether the launch uses what is there.
bool lay_pattern(unsigned char* to, const AroundLaunch& launch, unsigned char pattern) noexcept;

}  // namespace reprise::replay
