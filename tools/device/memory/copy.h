// Copies and memsets as operations: which engine they take, how they are validated, how long they last. Callers: the
// copy and memset functions, graph nodes.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/operation.h"
#include "tools/device/engines/engine.h"
#include "tools/device/memory/memory.h"
#include "tools/device/streams/dispatch.h"

namespace reprise::sim {

class Device;

// A box of bytes. Pitches are in bytes; slices are the distance of planes.
struct CopyShape {
  uint64_t destination = 0;
  uint64_t source = 0;
  uint64_t width = 0;  // bytes of a row
  uint64_t height = 1;
  uint64_t depth = 1;
  uint64_t destination_pitch = 0;
  uint64_t destination_slice = 0;
  uint64_t source_pitch = 0;
  uint64_t source_slice = 0;
  uint64_t bytes() const { return width * height * depth; }
  // Distance from the first to one past the last byte.
  uint64_t source_span() const { return (depth - 1) * source_slice + (height - 1) * source_pitch + width; }
  uint64_t destination_span() const {
    return (depth - 1) * destination_slice + (height - 1) * destination_pitch + width;
  }
};

// What each end of a copy has to be.
enum class Side : uint8_t { any, host, device };

struct CopyPlan {
  CopyShape shape;
  EngineKind engine = EngineKind::device_to_device;
  Device* device = nullptr;
  bool source_pageable = false;
  bool destination_pageable = false;
  bool host_only = false;  // no device takes part
};

// Validates both ends and finds the engine. CUDA_ERROR_INVALID_VALUE when an end is not what it has to be, or reaches
// beyond its allocation.
CUresult plan_copy(Context& context, const CopyShape& shape, Side destination, Side source, CopyPlan* plan);

enum class CopyMode : uint8_t { synchronous, asynchronous };

// Dispatches a planned copy with the driver's rules for host memory: pageable sources can be reused on return, pageable
// destinations are written on return, synchronous copies with the host have ended on return but for those of up to 1
// MiB from pageable memory, which are only staged.
CUresult submit_copy(Context& context, CUstream stream, const CopyPlan& plan, CopyMode mode);

OperationPointer copy_operation(const CopyPlan& plan);

struct MemsetShape {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint32_t value = 0;
  uint32_t element_bytes = 1;
  uint64_t width = 0;  // elements
  uint64_t height = 1;
  uint64_t span() const { return (height - 1) * pitch + width * element_bytes; }
};

CUresult check_memset(const MemsetShape& shape);
OperationPointer memset_operation(const MemsetShape& shape);

// For graph nodes: what an operation of kind copy or memset was made of.
const CopyPlan& copy_plan(const Operation& operation);
const MemsetShape& memset_shape(const Operation& operation);

}  // namespace reprise::sim
