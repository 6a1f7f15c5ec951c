// Words among a kernel's parameters that the recorder took for addresses, and that are two numbers of 32 bits side by
// side: where the driver hands out memory from a few GiB on, (6, 7) is 0x7'0000'0006, and some tensor lies there in one
// iteration and another in the next. Callers: all that read a recording to plan from it.
#pragma once
#include <cstdint>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

// Takes them out of the trace's launches, whose signatures become those of launches without them. A word goes only
// where the recording itself says that it is no address, which is so in two cases.
//
//  - The same word stood at the same place of the same kernel's parameters while no memory was there, and its lower
//    half is less than kLargestNumber. Without that limit it may be an address of before, in what a launch leaves of
//    the stack where it passes nothing.
//  - Most launches of a kernel in one shape have it at that place, whatever its lower half is (a divisor's inverse,
//    say), though it pointed into memory that began elsewhere another time, or to an odd address, or nowhere once and
//    never to where memory began.
//
//      gemm <<<8,392>>>  632: 0x3'92492493   in a tensor of 196 MiB, 149691539 bytes from its begin
//      gemm <<<8,392>>>  632: 0x3'92492493   in a tensor of 245 MiB, 201071251 bytes from its begin
//
// Memory that a word named in truth is not lost by that: the replay scans each launch itself, and a plan without it is
// left. Returns how many operands were taken out.
uint64_t drop_false_operands(trace::Trace* trace);

inline constexpr uint64_t kLargestNumber = 1u << 25;

}  // namespace reprise::analyzer
