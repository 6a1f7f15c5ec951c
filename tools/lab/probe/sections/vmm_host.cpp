#include "tools/lab/probe/sections/vmm_host.h"

#include <algorithm>

#include "tools/lab/probe/measure/mapping.h"

namespace reprise::probe {
namespace {

// Bytes per second of `work` on the device, 10 repeats.
template <typename Work>
Status measure_rate(SectionContext& context, const char* name, size_t bytes, CUstream stream, Work&& work) {
  std::vector<double> samples;
  PROBE_TRY(repeat(context.limit.part(0.2), 10, samples, [&] { return device_time(context.device, stream, work); }));
  for (double& sample : samples) sample = static_cast<double>(bytes) / sample * 1e9;
  context.report.measure(name, "bytes/s", std::move(samples), {{"bytes", bytes}});
  return Status::success();
}

Status measure_rates(SectionContext& context, CUdeviceptr host, size_t bytes) {
  const Device& device = context.device;
  const Driver& driver = device.driver();
  auto buffer = device.allocate(bytes);
  auto sum = device.allocate(sizeof(uint32_t));
  auto stream = device.make_stream();
  const auto read = device.kernel("probe_read");
  if (!buffer.ok()) return buffer.status();
  if (!sum.ok()) return sum.status();
  if (!stream.ok()) return stream.status();
  if (!read.ok()) return read.status();
  const CUdeviceptr there = buffer.value().get();
  const CUstream queue = stream.value().get();
  PROBE_TRY(measure_rate(context, "copy from host chunks", bytes, queue, [&]() -> Status {
    PROBE_CALL(driver, cuMemcpyAsync, there, host, bytes, queue);
    return Status::success();
  }));
  PROBE_TRY(measure_rate(context, "copy to host chunks", bytes, queue, [&]() -> Status {
    PROBE_CALL(driver, cuMemcpyAsync, host, there, bytes, queue);
    return Status::success();
  }));
  return measure_rate(context, "kernel reads host chunks", bytes, queue, [&] {
    const CUresult result =
        launch(device, read.value(), 1056, 256, queue, host, uint64_t{bytes / 4}, sum.value().get());
    return check(driver, result, "cuLaunchKernel");
  });
}

}  // namespace

Status measure_host_mappings(SectionContext& context) {
  const Device& device = context.device;
  if (!device.attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    context.report.fact("host NUMA chunks", "the driver says: not supported");
    return Status::success();
  }
  const auto unit = granularity(device, host_memory(device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!unit.ok()) return unit.status();
  const size_t chunk_bytes = (kWantedChunk + unit.value() - 1) / unit.value() * unit.value();
  const size_t count = std::clamp<size_t>(device.usable_bytes() / chunk_bytes, 1, 128);
  const Stopwatch create;
  auto chunks = make_chunks(device, host_memory(device), chunk_bytes, count);
  if (!chunks.ok()) return chunks.status();
  const Json parameters = {{"chunk_bytes", chunk_bytes}, {"count", count}, {"place", "host NUMA"}};
  context.report.measure("cuMemCreate", "ns", {create.nanoseconds() / static_cast<double>(count)}, parameters);
  const Stopwatch map;
  auto view = map_view(device, chunks.value(), chunk_bytes);
  if (!view.ok()) return view.status();
  context.report.measure("reserve, map and allow", "ns", {map.nanoseconds() / static_cast<double>(count)}, parameters);
  context.report.fact("host NUMA chunks", "mapped");
  return measure_rates(context, view.value().address(), count * chunk_bytes);
}

}  // namespace reprise::probe
