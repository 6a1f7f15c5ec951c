#include "tools/device/memory/copy.h"

#include <cstring>

#include "tools/device/base/settings.h"
#include "tools/device/base/trap.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/extents.h"
#include "tools/device/streams/operations.h"

namespace reprise::sim {
namespace {

// A pageable source up to this size is copied aside at the call, which returns before the copy is done; for a larger
// one the call waits, though nothing promises that.
constexpr uint64_t kStagedBytes = 1u << 20;

// Calls visit(destination, source) with the start of each row.
template <typename Visit>
void each_row(const CopyShape& shape, uint64_t source, Visit visit) {
  for (uint64_t z = 0; z < shape.depth; ++z) {
    for (uint64_t y = 0; y < shape.height; ++y) {
      visit(shape.destination + z * shape.destination_slice + y * shape.destination_pitch,
            source + z * shape.source_slice + y * shape.source_pitch);
    }
  }
}

void copy_rows(const CopyShape& shape, uint64_t source) {
  each_row(shape, source, [&](uint64_t to, uint64_t from) {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), shape.width);
  });
}

Duration copy_duration(EngineKind engine, uint64_t bytes) {
  const bool up = engine == EngineKind::host_to_device;
  if (!up && engine != EngineKind::device_to_host) return memory_duration(2 * bytes);
  const uint64_t rate = up ? settings().h2d_bytes_per_second : settings().d2h_bytes_per_second;
  return link_duration(bytes, rate, settings().latency.nanoseconds);
}

class CopyOperation final : public Operation {
 public:
  explicit CopyOperation(const CopyPlan& its_plan)
      : plan(its_plan), to_(WrittenPlace::at(plan.shape.destination)), from_(WrittenPlace::at(plan.shape.source)) {}
  OperationKind kind() const override { return OperationKind::copy; }

  // Copies the source aside now, so that the program can change it.
  void stage() {
    const uint64_t span = plan.shape.source_span();
    staged_.resize(span);
    std::memcpy(staged_.data(), reinterpret_cast<const void*>(plan.shape.source), span);
  }

  void execute(const Execution& execution) const override {
    if (plan.host_only) {
      const HostWork time(execution.time_ns);
      run(execution);
      return;
    }
    count(*plan.device);
    const EngineUse use(*plan.device, plan.engine, execution, copy_duration(plan.engine, plan.shape.bytes()));
    run(execution);
  }

  const CopyPlan plan;

 private:
  void run(const Execution& execution) const {
    const uint64_t source = staged_.empty() ? plan.shape.source : reinterpret_cast<uint64_t>(staged_.data());
    auto body = [&] { copy_rows(plan.shape, source); };
    if (!run_trapped(body)) execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    if (!to_.known()) return;
    each_row(plan.shape, plan.shape.source,
             [&](uint64_t to, uint64_t from) { to_.copy(to, from_, from, plan.shape.width); });
  }
  void count(Device& device) const {
    ++device.counters.copies;
    if (plan.engine == EngineKind::host_to_device) device.counters.copied_bytes_h2d += plan.shape.bytes();
    if (plan.engine == EngineKind::device_to_host) device.counters.copied_bytes_d2h += plan.shape.bytes();
  }
  std::vector<uint8_t> staged_;
  const WrittenPlace to_;
  const WrittenPlace from_;
};

template <typename Word>
void fill_row(uint64_t address, uint64_t count, uint32_t value) {
  Word* const words = reinterpret_cast<Word*>(address);
  for (uint64_t i = 0; i < count; ++i) words[i] = static_cast<Word>(value);
}

class MemsetOperation final : public Operation {
 public:
  MemsetOperation(const MemsetShape& its_shape, Device& device)
      : shape(its_shape), device_(device), to_(WrittenPlace::at(its_shape.address)) {}
  OperationKind kind() const override { return OperationKind::memset; }
  void execute(const Execution& execution) const override {
    const EngineUse use(device_, EngineKind::memset, execution, memory_duration(bytes()));
    auto body = [&] { fill(); };
    if (!run_trapped(body)) execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  const MemsetShape shape;

 private:
  uint64_t bytes() const { return shape.width * shape.height * shape.element_bytes; }
  void fill() const {
    for (uint64_t y = 0; y < shape.height; ++y) {
      const uint64_t row = shape.address + y * shape.pitch;
      if (shape.element_bytes == 1) {
        std::memset(reinterpret_cast<void*>(row), static_cast<int>(shape.value & 0xFF), shape.width);
      } else if (shape.element_bytes == 2) {
        fill_row<uint16_t>(row, shape.width, shape.value);
      } else {
        fill_row<uint32_t>(row, shape.width, shape.value);
      }
      to_.mark(row, shape.width * shape.element_bytes);
    }
  }
  Device& device_;
  const WrittenPlace to_;
};

bool fits(const MemoryMap::Place& place, Side side) {
  switch (side) {
    case Side::device:
      return place.known && place.complete;
    case Side::host:
    case Side::any:
      return place.pageable || place.complete;
  }
  return false;
}

}  // namespace

CUresult plan_copy(Context& context, const CopyShape& shape, Side destination, Side source, CopyPlan* plan) {
  plan->shape = shape;
  plan->device = &context.device;
  if (shape.bytes() == 0) return CUDA_SUCCESS;
  if (shape.destination == 0 || shape.source == 0) return CUDA_ERROR_INVALID_VALUE;
  const MemoryMap::Place to = memory_map().place(shape.destination, shape.destination_span());
  const MemoryMap::Place from = memory_map().place(shape.source, shape.source_span());
  if (!fits(to, destination) || !fits(from, source)) return CUDA_ERROR_INVALID_VALUE;
  plan->source_pageable = from.pageable;
  plan->destination_pageable = to.pageable;
  const bool to_device = to.device != nullptr && destination != Side::host;
  const bool from_device = from.device != nullptr && source != Side::host;
  plan->host_only = !to_device && !from_device;
  if (to_device) plan->device = to.device;
  if (from_device) plan->device = from.device;
  plan->engine = to_device && !from_device   ? EngineKind::host_to_device
                 : from_device && !to_device ? EngineKind::device_to_host
                                             : EngineKind::device_to_device;
  return CUDA_SUCCESS;
}

// "API synchronization behavior" of the driver API: such a copy begins when its stream has done all that it was given,
// and the call returns when the bytes are staged.
static CUresult wait_for_earlier(Context& context, CUstream stream) {
  Dispatched earlier;
  const CUresult result = dispatch(context, stream, empty_operation(), &earlier);
  return result == CUDA_SUCCESS ? wait_dispatched(earlier) : result;
}

CUresult submit_copy(Context& context, CUstream stream, const CopyPlan& plan, CopyMode mode) {
  if (plan.shape.bytes() == 0) {
    std::shared_ptr<Stream> target;
    return find_work_stream(context, stream, &target);
  }
  auto operation = std::make_shared<CopyOperation>(plan);
  std::shared_ptr<Stream> target;
  if (const CUresult result = find_work_stream(context, stream, &target); result != CUDA_SUCCESS) return result;
  const bool captured = target->capturing.load(std::memory_order_relaxed);
  bool wait = mode == CopyMode::synchronous && plan.engine != EngineKind::device_to_device;
  if (plan.host_only || plan.destination_pageable) wait = true;
  if (plan.source_pageable && !captured) {
    if (plan.shape.source_span() > kStagedBytes) {
      wait = true;
    } else {
      if (wait && plan.engine == EngineKind::host_to_device) {
        if (const CUresult result = wait_for_earlier(context, stream); result != CUDA_SUCCESS) return result;
        wait = false;
      }
      operation->stage();
    }
  }
  Dispatched dispatched;
  if (const CUresult result = dispatch(context, stream, std::move(operation), &dispatched); result != CUDA_SUCCESS) {
    return result;
  }
  return wait ? wait_dispatched(dispatched) : CUDA_SUCCESS;
}

OperationPointer copy_operation(const CopyPlan& plan) { return std::make_shared<CopyOperation>(plan); }

CUresult check_memset(const MemsetShape& shape) {
  if (shape.width == 0 || shape.height == 0) return CUDA_SUCCESS;
  if (shape.address % shape.element_bytes != 0 || shape.pitch % shape.element_bytes != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (shape.height > 1 && shape.pitch < shape.width * shape.element_bytes) return CUDA_ERROR_INVALID_VALUE;
  const MemoryMap::Place place = memory_map().place(shape.address, shape.span());
  return place.known && place.complete ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

OperationPointer memset_operation(const MemsetShape& shape) {
  const MemoryMap::Place place = memory_map().place(shape.address, shape.span());
  return std::make_shared<MemsetOperation>(shape, place.device == nullptr ? *find_device(0) : *place.device);
}

const CopyPlan& copy_plan(const Operation& operation) { return static_cast<const CopyOperation&>(operation).plan; }
const MemsetShape& memset_shape(const Operation& operation) {
  return static_cast<const MemsetOperation&>(operation).shape;
}

}  // namespace reprise::sim
