// Words among a kernel's parameters that the recorder took for addresses, and that are two numbers of 32 bits side by
// side: where the driver hands out memory from a few GiB on, (6, 7) is 0x7'0000'0006, and some tensor lies there in one
// iteration and another in the next. Callers: all that read a recording to plan from it.
#pragma once
#include <cstdint>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

// Takes them out of the trace's launches, whose signatures become those of launches without them. A word goes only
// where the recording itself says that it is no address: the same word stood at the same place of the same kernel's
// parameters while no memory was there, its upper half is what a small number would be, and its lower half is less
// than kLargestNumber. Memory that a reused word named in truth is not lost by that: the replay scans each launch
// itself, and a plan without it is left. Returns how many operands were taken out.
uint64_t drop_false_operands(trace::Trace* trace);

inline constexpr uint64_t kLargestNumber = 1u << 25;

}  // namespace reprise::analyzer
