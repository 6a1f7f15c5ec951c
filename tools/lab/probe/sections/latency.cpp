// Section 5: what the calls cost that the dispatcher makes for every op: launches, events, waits, host functions,
// allocations, and how deep the driver's queue is before a launch blocks.
#include <fmt/format.h>

#include <atomic>

#include "tools/lab/probe/output/section.h"

namespace reprise::probe {
namespace {

constexpr unsigned kCalls = 1000;  // in one sample
constexpr unsigned kSamplesOfCalls = 20;

struct Parameters4096 {
  uint8_t bytes[4088];
};

// Host time per call of kCalls calls, nothing waited for in between; `call` returns Status.
template <typename Call>
Status per_call(SectionContext& context, const char* name, Call&& call, unsigned calls = kCalls,
                Json parameters = Json::object()) {
  std::vector<double> samples;
  PROBE_TRY(repeat(context.limit, kSamplesOfCalls, samples, [&]() -> Result<double> {
    const Stopwatch watch;
    for (unsigned i = 0; i < calls; ++i) PROBE_TRY(call());
    const double nanoseconds = watch.nanoseconds() / calls;
    PROBE_TRY(context.device.synchronize());
    return nanoseconds;
  }));
  context.report.measure(name, "ns", std::move(samples), std::move(parameters));
  return Status::success();
}

Status launches(SectionContext& context) {
  const Device& device = context.device;
  const auto empty = device.kernel("probe_empty");
  const auto large = device.kernel("probe_large_parameters");
  auto stream = device.make_stream();
  for (const Status& status : {empty.status(), large.status(), stream.status()}) PROBE_TRY(status);
  const CUstream queue = stream.value().get();
  const auto launch_empty = [&] {
    return check(device.driver(), launch(device, empty.value(), 1, 32, queue), "cuLaunchKernel");
  };
  const auto launch_large = [&] {
    return check(device.driver(), launch(device, large.value(), 1, 32, queue, CUdeviceptr{0}, Parameters4096{}),
                 "cuLaunchKernel");
  };
  PROBE_TRY(per_call(context, "launch call, empty kernel", launch_empty, 256));
  PROBE_TRY(per_call(context, "launch call, 4 KiB parameters", launch_large, 256));
  std::vector<double> on_device;
  PROBE_TRY(repeat(context.limit, kSamplesOfCalls, on_device, [&]() -> Result<double> {
    auto time = device_time(device, queue, [&]() -> Status {
      for (unsigned i = 0; i < kCalls; ++i) PROBE_TRY(launch_empty());
      return Status::success();
    });
    if (time.ok()) time.value() /= kCalls;
    return time;
  }));
  if (const auto summary = summarize(on_device)) context.machine.launch_latency_ns = summary->median;
  context.report.measure("launch to launch, one stream", "ns", std::move(on_device));
  std::vector<double> round_trip;
  PROBE_TRY(repeat(context.limit, 200, round_trip, [&]() -> Result<double> {
    const Stopwatch watch;
    PROBE_TRY(launch_empty());
    PROBE_CALL(device.driver(), cuStreamSynchronize, queue);
    return watch.nanoseconds();
  }));
  context.report.measure("launch and synchronise", "ns", std::move(round_trip));
  return Status::success();
}

Status events(SectionContext& context) {
  const Device& device = context.device;
  const Driver& driver = device.driver();
  auto first = device.make_stream();
  auto second = device.make_stream();
  auto event = device.make_event(CU_EVENT_DISABLE_TIMING);
  auto timed = device.make_event();
  const auto empty = device.kernel("probe_empty");
  for (const Status& status : {first.status(), second.status(), event.status(), timed.status(), empty.status()})
    PROBE_TRY(status);
  const CUstream streams[] = {first.value().get(), second.value().get()};
  const CUevent plain = event.value().get();
  PROBE_TRY(per_call(
      context, "event record", [&] { return check(driver, driver.cuEventRecord(plain, streams[0]), "cuEventRecord"); },
      256));
  PROBE_TRY(per_call(
      context, "event record, with timing",
      [&] { return check(driver, driver.cuEventRecord(timed.value().get(), streams[0]), "cuEventRecord"); }, 256));
  PROBE_TRY(
      per_call(context, "event query", [&] { return check(driver, driver.cuEventQuery(plain), "cuEventQuery"); }));
  PROBE_TRY(per_call(
      context, "stream wait call",
      [&] { return check(driver, driver.cuStreamWaitEvent(streams[1], plain, 0), "cuStreamWaitEvent"); }, 256));
  PROBE_TRY(per_call(context, "event synchronise, complete",
                     [&] { return check(driver, driver.cuEventSynchronize(plain), "cuEventSynchronize"); }));
  // A chain of kernels that changes the stream by an event at every step, against the same chain on one stream.
  std::vector<double> chains[2];
  for (const bool crossing : {false, true}) {
    PROBE_TRY(repeat(context.limit, kSamplesOfCalls, chains[crossing], [&]() -> Result<double> {
      constexpr unsigned kSteps = 400;
      auto time = device_time(device, streams[0], [&]() -> Status {
        for (unsigned i = 0; i < kSteps; ++i) {
          const CUstream from = streams[crossing ? i & 1 : 0];
          const CUstream to = streams[crossing ? (i + 1) & 1 : 0];
          PROBE_TRY(check(driver, launch(device, empty.value(), 1, 32, from), "cuLaunchKernel"));
          if (!crossing) continue;
          PROBE_CALL(driver, cuEventRecord, plain, from);
          PROBE_CALL(driver, cuStreamWaitEvent, to, plain, 0);
        }
        return Status::success();
      });
      if (time.ok()) time.value() /= kSteps;
      return time;
    }));
    context.report.measure("kernel in a chain", "ns", chains[crossing], {{"streams", crossing ? 2 : 1}});
  }
  const auto same = summarize(chains[0]);
  const auto crossed = summarize(chains[1]);
  if (same && crossed && crossed->median > same->median) context.machine.event_wait_ns = crossed->median - same->median;
  return Status::success();
}

Status host_functions(SectionContext& context) {
  const Device& device = context.device;
  auto stream = device.make_stream();
  if (!stream.ok()) return stream.status();
  std::vector<double> samples;
  PROBE_TRY(repeat(context.limit, 100, samples, [&]() -> Result<double> {
    std::atomic<int> called{0};
    const Stopwatch watch;
    PROBE_CALL(
        device.driver(), cuLaunchHostFunc, stream.value().get(),
        [](void* flag) { static_cast<std::atomic<int>*>(flag)->store(1); }, &called);
    PROBE_CALL(device.driver(), cuStreamSynchronize, stream.value().get());
    return called.load() ? watch.nanoseconds() : -1.0;
  }));
  context.report.measure("host function and synchronise", "ns", std::move(samples));
  return Status::success();
}

// From a plain store of the host to the end of the stream that waited for it. The waiting stream holds nothing that any
// other call of this process could wait for, and the store is the next thing this thread does.
Status wait_value(SectionContext& context) {
  const Device& device = context.device;
  auto stream = device.make_stream();
  auto word = device.allocate_host(64, CU_MEMHOSTALLOC_DEVICEMAP);
  for (const Status& status : {stream.status(), word.status()}) PROBE_TRY(status);
  CUdeviceptr address = 0;
  PROBE_CALL(device.driver(), cuMemHostGetDevicePointer, &address, word.value().get(), 0);
  auto* gate = static_cast<uint32_t*>(word.value().get());
  std::vector<double> samples;
  uint32_t turn = 0;
  PROBE_TRY(repeat(context.limit, 100, samples, [&]() -> Result<double> {
    ++turn;
    PROBE_CALL(device.driver(), cuStreamWaitValue32, stream.value().get(), address, turn, CU_STREAM_WAIT_VALUE_EQ);
    const Stopwatch watch;
    std::atomic_ref<uint32_t>(*gate).store(turn, std::memory_order_release);
    PROBE_CALL(device.driver(), cuStreamSynchronize, stream.value().get());
    return watch.nanoseconds();
  }));
  context.report.measure("wait-value release and synchronise", "ns", std::move(samples));
  return Status::success();
}

// Launches behind a long kernel until one takes long: the driver's queue is full then. 0: none did.
Result<unsigned> fill_queue(const Device& device, CUfunction spin, CUfunction empty, CUstream stream) {
  constexpr uint64_t kBusyNanoseconds = 200'000'000;
  constexpr double kBlockedNanoseconds = 50e6;  // far more than being scheduled away takes
  constexpr unsigned kMost = 100'000;
  PROBE_TRY(check(device.driver(), launch(device, spin, 1, 1, stream, kBusyNanoseconds), "cuLaunchKernel"));
  unsigned depth = 0;
  const Stopwatch all;
  for (unsigned i = 1; i <= kMost && depth == 0 && all.nanoseconds() < kBusyNanoseconds; ++i) {
    const Stopwatch watch;
    PROBE_TRY(check(device.driver(), launch(device, empty, 1, 32, stream), "cuLaunchKernel"));
    if (watch.nanoseconds() > kBlockedNanoseconds) depth = i;
  }
  PROBE_CALL(device.driver(), cuStreamSynchronize, stream);
  return depth;
}

Status queue_depth(SectionContext& context) {
  const Device& device = context.device;
  const auto spin = device.kernel("probe_spin");
  const auto empty = device.kernel("probe_empty");
  auto stream = device.make_stream();
  for (const Status& status : {spin.status(), empty.status(), stream.status()}) PROBE_TRY(status);
  std::vector<double> samples;
  bool blocked = true;
  PROBE_TRY(repeat(context.limit, 3, samples, [&]() -> Result<double> {
    const auto depth = fill_queue(device, spin.value(), empty.value(), stream.value().get());
    if (!depth.ok()) return depth.status();
    blocked = blocked && depth.value() > 0;
    return depth.value();
  }));
  if (blocked) context.report.measure("launches before one blocks", "launches", std::move(samples));
  if (!blocked) context.report.fact("launches before one blocks", "none blocked while the device was busy");
  return Status::success();
}

// Pairs of a call that allocates and one that frees, timed apart.
template <typename Allocate, typename Free>
Status allocation_pairs(SectionContext& context, const char* allocate_name, const char* free_name, Allocate&& allocate,
                        Free&& free) {
  for (const size_t bytes : {size_t{4} << 10, size_t{2} << 20, size_t{256} << 20}) {
    if (bytes > context.device.usable_bytes()) continue;
    std::vector<double> allocated, freed, ignored;
    PROBE_TRY(repeat(context.limit, kSamplesOfCalls, ignored, [&]() -> Result<double> {
      CUdeviceptr pointer = 0;
      const Stopwatch first;
      PROBE_TRY(allocate(&pointer, bytes));
      allocated.push_back(first.nanoseconds());
      const Stopwatch second;
      PROBE_TRY(free(pointer));
      freed.push_back(second.nanoseconds());
      return 0.0;
    }));
    drop_warm_up(allocated, freed);
    context.report.measure(allocate_name, "ns", std::move(allocated), {{"bytes", bytes}});
    context.report.measure(free_name, "ns", std::move(freed), {{"bytes", bytes}});
  }
  return Status::success();
}

Status allocations(SectionContext& context) {
  const Driver& driver = context.device.driver();
  return allocation_pairs(
      context, "cuMemAlloc", "cuMemFree",
      [&](CUdeviceptr* pointer, size_t bytes) -> Status {
        PROBE_CALL(driver, cuMemAlloc, pointer, bytes);
        return Status::success();
      },
      [&](CUdeviceptr pointer) -> Status {
        PROBE_CALL(driver, cuMemFree, pointer);
        return Status::success();
      });
}

Status allocations_in_stream(SectionContext& context) {
  const Driver& driver = context.device.driver();
  auto stream = context.device.make_stream();
  if (!stream.ok()) return stream.status();
  const CUstream queue = stream.value().get();
  PROBE_TRY(allocation_pairs(
      context, "cuMemAllocAsync", "cuMemFreeAsync",
      [&](CUdeviceptr* pointer, size_t bytes) -> Status {
        PROBE_CALL(driver, cuMemAllocAsync, pointer, bytes, queue);
        return Status::success();
      },
      [&](CUdeviceptr pointer) -> Status {
        PROBE_CALL(driver, cuMemFreeAsync, pointer, queue);
        return Status::success();
      }));
  PROBE_CALL(driver, cuStreamSynchronize, queue);
  CUmemoryPool pool = nullptr;
  PROBE_CALL(driver, cuDeviceGetDefaultMemPool, &pool, context.device.handle());
  PROBE_CALL(driver, cuMemPoolTrimTo, pool, 0);
  return Status::success();
}

Status loading(SectionContext& context) {
  const Driver& driver = context.device.driver();
  std::vector<double> modules;
  PROBE_TRY(repeat(context.limit, 5, modules, [&]() -> Result<double> {
    CUmodule module = nullptr;
    const Stopwatch watch;
    PROBE_CALL(driver, cuModuleLoadData, &module, kernel_image());
    const double nanoseconds = watch.nanoseconds();
    PROBE_CALL(driver, cuModuleUnload, module);
    return nanoseconds;
  }));
  context.report.measure("module load", "ns", std::move(modules));
  std::vector<double> contexts;
  PROBE_TRY(repeat(context.limit, 3, contexts, [&]() -> Result<double> {
    CUcontext created = nullptr;
    const Stopwatch watch;
    PROBE_CALL(driver, cuCtxCreate, &created, nullptr, 0, context.device.handle());
    const double nanoseconds = watch.nanoseconds();
    PROBE_CALL(driver, cuCtxDestroy, created);
    PROBE_TRY(context.device.make_current());
    return nanoseconds;
  }));
  context.report.measure("context creation", "ns", std::move(contexts));
  return Status::success();
}

}  // namespace

void measure_latency(SectionContext& context) {
  attempt(context, "launches", launches);
  attempt(context, "events", events);
  attempt(context, "host functions", host_functions);
  attempt(context, "wait value", wait_value);
  attempt(context, "queue depth", queue_depth);
  attempt(context, "allocations", allocations);
  attempt(context, "allocations in stream order", allocations_in_stream);
  attempt(context, "loading", loading);
}

}  // namespace reprise::probe
