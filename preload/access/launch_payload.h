// A kernel launch as a position-independent payload: its parameters and attributes copied, so that it can be issued
// later and from another thread. Callers: the launch hooks.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/tracking/functions.h"

namespace reprise {

// What the program asked for, on whichever of the three calls.
struct LaunchRequest {
  enum class Form : uint32_t { plain, extended, cooperative };
  Form form;
  CUfunction handle;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  CUstream stream;
  void** parameters;  // exactly one of these two, or neither for a kernel without parameters
  void** extra;
  const CUlaunchAttribute* attributes;
  uint32_t attribute_count;
};

// The head of the payload; attributes and parameter bytes follow. `raw_*` are the program's own arrays, for launches
// whose parameters could not be copied: they are valid during the call only.
struct alignas(16) LaunchPayload {
  enum class Source : uint32_t { none, list, buffer, raw };
  LaunchRequest::Form form;
  Source source;
  CUfunction handle;
  const Function* function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t attribute_count;
  uint32_t attributes_offset;  // from the payload's start
  uint32_t parameters_offset;
  uint32_t parameter_bytes;
  void** raw_parameters;
  void** raw_extra;
};

struct LaunchPlan {
  LaunchPayload::Source source;
  uint32_t attribute_count;  // that are kept
  uint32_t parameter_bytes;
  const void* buffer;  // of `extra`
  uint32_t payload_bytes;
  bool events;  // an attribute names an event: a dependency that a copy of the launch would not keep
};

// How large the payload is and where its parameters come from. While memory is managed, programmatic dependent launch
// is left out: it is a hint, and would let a kernel start before the one before it has ended.
LaunchPlan plan_launch(const LaunchRequest& request, const Function* function, bool managed) noexcept;

// Fills `payload` (plan.payload_bytes, alignment 16).
void build_launch(const LaunchRequest& request, const Function* function, const LaunchPlan& plan, bool managed,
                  void* payload) noexcept;

// IssueFunctions of launches: of a payload as above; of a LaunchRequest, where the call is issued before it returns, so
// that the driver may have the program's own arrays.
CUresult issue_launch(const void* payload, CUstream stream) noexcept;
CUresult issue_request(const void* request, CUstream stream) noexcept;

// The launch itself, unchanged.
CUresult launch_now(const LaunchRequest& request) noexcept;

// What tells whether a launch like this one has succeeded before: function, shape and attributes. `grid`: its
// trace::grid_signature().
uint64_t shape_of(const LaunchRequest& request, const Function& function, uint64_t grid) noexcept;

}  // namespace reprise
