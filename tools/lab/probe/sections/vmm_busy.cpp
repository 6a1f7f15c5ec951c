#include "tools/lab/probe/sections/vmm_busy.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace reprise::probe {
namespace {

constexpr uint64_t kKernelNanoseconds = 20'000;
constexpr unsigned kQueued = 32;  // launches between two waits: the queue never runs dry, and never fills

struct Traffic {
  std::vector<double> launch_ns;  // each call of cuLaunchKernel
  std::vector<double> batch_ns;   // host time for kQueued kernels of steady state, per kernel
  Status status;
};

// Launches kernels until `stop`; two events keep it between one and two batches ahead of the GPU.
Status launch_until(const Device& device, const std::atomic<bool>& stop, Traffic& traffic) {
  const Driver& driver = device.driver();
  PROBE_TRY(device.make_current());
  const auto kernel = device.kernel("probe_spin");
  if (!kernel.ok()) return kernel.status();
  auto stream = device.make_stream();
  if (!stream.ok()) return stream.status();
  Event marks[2];
  for (Event& mark : marks) {
    auto made = device.make_event(CU_EVENT_DISABLE_TIMING);
    if (!made.ok()) return made.status();
    mark = std::move(made.value());
  }
  unsigned turn = 0;
  while (!stop.load(std::memory_order_relaxed) && traffic.launch_ns.size() < 4'000'000) {
    const Stopwatch batch;
    for (unsigned i = 0; i < kQueued; ++i) {
      const Stopwatch watch;
      const CUresult result = launch(device, kernel.value(), 1, 1, stream.value().get(), kKernelNanoseconds);
      PROBE_TRY(check(driver, result, "cuLaunchKernel"));
      traffic.launch_ns.push_back(watch.nanoseconds());
    }
    PROBE_CALL(driver, cuEventRecord, marks[turn & 1].get(), stream.value().get());
    if (turn > 0) PROBE_CALL(driver, cuEventSynchronize, marks[(turn + 1) & 1].get());
    if (turn > 1) traffic.batch_ns.push_back(batch.nanoseconds() / kQueued);
    ++turn;
  }
  PROBE_CALL(driver, cuStreamSynchronize, stream.value().get());
  return Status::success();
}

void report_traffic(SectionContext& context, Traffic& traffic, const char* beside) {
  const Json parameters = {{"beside", beside}};
  const auto high = quantile(traffic.launch_ns, 0.999);
  context.report.measure("launch in another thread", "ns", std::move(traffic.launch_ns), parameters);
  if (high) context.report.measure("launch in another thread, 99.9 %", "ns", {*high}, parameters);
  context.report.measure("kernel of 20 us in another thread", "ns", std::move(traffic.batch_ns), parameters);
}

}  // namespace

Status with_busy_gpu(SectionContext& context, const std::function<Status(SectionContext&)>& work) {
  Status result;
  for (const bool calls : {false, true}) {
    Traffic traffic;
    std::atomic<bool> stop{false};
    std::thread thread([&] { traffic.status = launch_until(context.device, stop, traffic); });
    if (calls) {
      result = work(context);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    stop.store(true, std::memory_order_relaxed);
    thread.join();
    PROBE_TRY(traffic.status);
    report_traffic(context, traffic, calls ? "VMM calls" : "nothing");
  }
  return result;
}

}  // namespace reprise::probe
