#include "tools/lab/probe/sections/link_host.h"

#include <algorithm>
#include <thread>

#include "tools/lab/probe/measure/host_memory.h"

namespace reprise::probe {
namespace {

double rate(size_t bytes, double nanoseconds) { return static_cast<double>(bytes) / nanoseconds * 1e9; }

}  // namespace

Status measure_pinning(SectionContext& context, const Limit& limit) {
  const Device& device = context.device;
  const size_t bytes = std::min(size_t{2} << 30, usable_host_bytes()) & ~(2 * kMiB - 1);
  std::vector<double> allocated;
  PROBE_TRY(repeat(limit.part(0.2), 3, allocated, [&]() -> Result<double> {
    const Stopwatch watch;
    const auto buffer = device.allocate_host(bytes);
    if (!buffer.ok()) return buffer.status();
    return rate(bytes, watch.nanoseconds());
  }));
  context.report.measure("cuMemHostAlloc", "bytes/s", std::move(allocated), {{"bytes", bytes}});
  const unsigned most = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned threads = 1; threads <= std::min(most, 16u) && !limit.over(); threads *= 2) {
    std::vector<double> touched, registered, both;
    PROBE_TRY(repeat(limit.part(0.2), 3, both, [&]() -> Result<double> {
      double touch_ns = 0;
      double register_ns = 0;
      const auto memory = HostMemory::register_pages(device, bytes, threads, &touch_ns, &register_ns);
      if (!memory.ok()) return memory.status();
      touched.push_back(rate(bytes, touch_ns));
      registered.push_back(rate(bytes, register_ns));
      return rate(bytes, touch_ns + register_ns);
    }));
    drop_warm_up(touched, registered);
    const Json parameters = {{"bytes", bytes}, {"threads", threads}};
    context.report.measure("first touch", "bytes/s", std::move(touched), parameters);
    context.report.measure("cuMemHostRegister, touched", "bytes/s", std::move(registered), parameters);
    context.report.measure("touch and register", "bytes/s", std::move(both), parameters);
  }
  return Status::success();
}

}  // namespace reprise::probe
