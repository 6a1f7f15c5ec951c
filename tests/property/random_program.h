// Random iterations for property tests: in-place ops, views, persistent and small tensors, all sizes, frees in any
// order, waits, copies, now and then an opaque op.
#pragma once
#include <cstdint>

#include "preload/trace/reader.h"

namespace reprise::analyzer::testing {

struct ProgramShape {
  uint32_t seed = 0;
  int persistent = 4;  // tensors
  int ops = 12;        // per iteration
  int largest = 4;     // chunks of a tensor
  int iterations = 3;
  bool views = true;      // accesses to parts of tensors
  bool read_only = true;  // some accesses only read; otherwise all read and write, as recorded kernels do
  bool small = true;      // tensors below half a chunk
  bool opaque = false;
  uint32_t streams = 1;  // on which the ops are spread; where one follows another, the second waits for an event
};

// Shrinks towards few ops and tensors. Call inside a RapidCheck property.
ProgramShape any_shape();
trace::Trace random_program(const ProgramShape& shape);

}  // namespace reprise::analyzer::testing
