// Section 7: what recording with CUPTI costs and whether it lives with others: cost of a launch while on, the stall of
// the first enabling, detaching and attaching again, a second subscriber, its clock against that of events.
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/subjects/cupti_library.h"

namespace reprise::probe {
namespace {

struct Cupti {
#define REPRISE_PROBE_CUPTI(name) decltype(&::name) name = nullptr;
#include "tools/lab/probe/sections/cupti_functions.def"
#undef REPRISE_PROBE_CUPTI
};
Cupti cupti;

struct Records {
  std::mutex mutex;
  std::vector<double> durations_ns;
};
Records& records() {
  static Records& all = *new Records;
  return all;
}

Status cupti_status(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return Status::success();
  const char* text = nullptr;
  cupti.cuptiGetResultString(result, &text);
  return {StatusCode::io_error, fmt::format("{}: {}", what, text ? text : "unknown error")};
}
#define CUPTI_TRY(function, ...) PROBE_TRY(cupti_status(cupti.function(__VA_ARGS__), #function))

Status load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {StatusCode::not_found, dlerror()};
#define REPRISE_PROBE_CUPTI(name)                                             \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name)); \
  if (!cupti.name) return {StatusCode::unsupported, "this CUPTI lacks " #name};
#include "tools/lab/probe/sections/cupti_functions.def"
#undef REPRISE_PROBE_CUPTI
  return Status::success();
}

void request_buffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  constexpr size_t kBytes = size_t{8} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBytes));
  *bytes = *buffer ? kBytes : 0;
  *most_records = 0;
}

void take_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*bytes*/, size_t valid) {
  CUpti_Activity* record = nullptr;
  const std::lock_guard lock(records().mutex);
  while (valid > 0 && cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    records().durations_ns.push_back(static_cast<double>(kernel->end - kernel->start));
  }
  std::free(buffer);
}

std::vector<double> take_durations() {
  const std::lock_guard lock(records().mutex);
  return std::exchange(records().durations_ns, {});
}

Status attach() {
  CUPTI_TRY(cuptiActivityRegisterCallbacks, request_buffer, take_buffer);
  CUPTI_TRY(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return Status::success();
}

class Launching {
 public:
  static Result<Launching> make(const Device& device) {
    const auto empty = device.kernel("probe_empty");
    const auto spin = device.kernel("probe_spin");
    auto stream = device.make_stream();
    for (const Status& status : {empty.status(), spin.status(), stream.status()}) PROBE_TRY(status);
    return Launching(device, empty.value(), spin.value(), std::move(stream.value()));
  }

  // Host time of a launch call, and time from launch to launch on the device.
  Status cost(SectionContext& context, const char* state) {
    constexpr unsigned kCalls = 500;
    std::vector<double> call, device;
    PROBE_TRY(repeat(context.limit, 20, device, [&]() -> Result<double> {
      const Stopwatch watch;
      auto time = device_time(*device_, stream_.get(), [&]() -> Status {
        for (unsigned i = 0; i < kCalls; ++i)
          PROBE_TRY(check(device_->driver(), launch(*device_, empty_, 1, 32, stream_.get()), "cuLaunchKernel"));
        call.push_back(watch.nanoseconds() / kCalls);
        return Status::success();
      });
      if (time.ok()) time.value() /= kCalls;
      return time;
    }));
    drop_warm_up(call);
    context.report.measure("launch call", "ns", std::move(call), {{"cupti", state}});
    context.report.measure("launch to launch", "ns", std::move(device), {{"cupti", state}});
    return Status::success();
  }

  Result<double> first_launch() {
    const Stopwatch watch;
    PROBE_TRY(check(device_->driver(), launch(*device_, empty_, 1, 32, stream_.get()), "cuLaunchKernel"));
    PROBE_TRY(device_->synchronize());
    return watch.nanoseconds();
  }

  // The same kernels' durations by event pairs.
  Result<std::vector<double>> spin_durations(unsigned count) {
    std::vector<double> durations;
    for (unsigned i = 0; i < count; ++i) {
      const auto time = device_time(*device_, stream_.get(), [&] {
        return check(device_->driver(), launch(*device_, spin_, 1, 1, stream_.get(), uint64_t{100'000}),
                     "cuLaunchKernel");
      });
      if (!time.ok()) return time.status();
      durations.push_back(time.value());
    }
    return durations;
  }

 private:
  Launching(const Device& device, CUfunction empty, CUfunction spin, Stream stream)
      : device_(&device), empty_(empty), spin_(spin), stream_(std::move(stream)) {}
  const Device* device_;
  CUfunction empty_;
  CUfunction spin_;
  Stream stream_;
};

Status clocks(SectionContext& context, Launching& launching) {
  CUPTI_TRY(cuptiActivityFlushAll, 0);
  take_durations();
  const auto events = launching.spin_durations(50);
  if (!events.ok()) return events.status();
  PROBE_TRY(context.device.synchronize());
  CUPTI_TRY(cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  context.report.measure("kernel of 100 us by event pairs", "ns", events.value());
  context.report.measure("kernel of 100 us by records", "ns", take_durations());
  std::vector<double> offsets;
  for (int i = 0; i < 100; ++i) {
    uint64_t theirs = 0;
    timespec ours = {};
    CUPTI_TRY(cuptiGetTimestamp, &theirs);
    clock_gettime(CLOCK_REALTIME, &ours);
    offsets.push_back(static_cast<double>(ours.tv_sec) * 1e9 + static_cast<double>(ours.tv_nsec) -
                      static_cast<double>(theirs));
  }
  context.report.measure("CLOCK_REALTIME minus CUPTI's clock", "ns", std::move(offsets));
  return Status::success();
}

// Finalising is allowed at the end of a driver call that CUPTI itself reports.
void finalize_at_exit(void* done, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  bool& finalized = *static_cast<bool*>(done);
  if (call->callbackSite != CUPTI_API_EXIT || finalized) return;
  finalized = true;
  cupti.cuptiFinalize();
}

void ignore_callback(void* /*user*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/, const void* /*data*/) {}

Status second_subscriber(SectionContext& context) {
  CUpti_SubscriberHandle first = nullptr;
  CUpti_SubscriberHandle second = nullptr;
  CUPTI_TRY(cuptiSubscribe, &first, ignore_callback, nullptr);
  const CUptiResult result = cupti.cuptiSubscribe(&second, ignore_callback, nullptr);
  const Status status = cupti_status(result, "answer");
  context.report.fact("second subscriber", status.ok() ? "accepted" : status.message());
  if (status.ok()) CUPTI_TRY(cuptiUnsubscribe, second);
  CUPTI_TRY(cuptiUnsubscribe, first);
  return Status::success();
}

Status detach(SectionContext& context) {
  CUpti_SubscriberHandle subscriber = nullptr;
  static bool finalized = false;  // where finalising is refused, callbacks go on after this function
  CUPTI_TRY(cuptiSubscribe, &subscriber, finalize_at_exit, &finalized);
  CUPTI_TRY(cuptiEnableDomain, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  const Stopwatch watch;
  PROBE_TRY(context.device.synchronize());
  context.report.measure("detach", "ns", {watch.nanoseconds()});
  context.report.fact("detached", finalized);
  return Status::success();
}

Status enable_first(SectionContext& context, Launching& launching) {
  const Stopwatch enabling;
  PROBE_TRY(attach());
  context.report.measure("first enabling", "ns", {enabling.nanoseconds()});
  const auto first = launching.first_launch();
  if (!first.ok()) return first.status();
  context.report.measure("first launch after it", "ns", {first.value()});
  return launching.cost(context, "on");
}

Status disable(SectionContext& context, Launching& launching) {
  CUPTI_TRY(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return launching.cost(context, "disabled");
}

Status attach_again(SectionContext& context, Launching& launching) {
  const Stopwatch again;
  PROBE_TRY(attach());
  context.report.measure("attaching again", "ns", {again.nanoseconds()});
  take_durations();
  PROBE_TRY(launching.cost(context, "attached again"));
  CUPTI_TRY(cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  context.report.fact("records after attaching again", take_durations().size());
  return Status::success();
}

// In this order: recording is off, on, off and on again. Each may fail without taking the others.
void all(SectionContext& context, Launching& launching) {
  attempt(context, "never on", [&](SectionContext& c) { return launching.cost(c, "never on"); });
  attempt(context, "first enabling", [&](SectionContext& c) { return enable_first(c, launching); });
  attempt(context, "clocks", [&](SectionContext& c) { return clocks(c, launching); });
  attempt(context, "second subscriber", second_subscriber);
  attempt(context, "disabling", [&](SectionContext& c) { return disable(c, launching); });
  attempt(context, "detaching", [&](SectionContext& c) -> Status {
    PROBE_TRY(detach(c));
    return launching.cost(c, "detached");
  });
  attempt(context, "attaching again", [&](SectionContext& c) { return attach_again(c, launching); });
}

}  // namespace

void measure_cupti(SectionContext& context) {
  if (context.driver.simulated) {
    context.report.note("CUPTI does not run on the simulated device");
    context.report.set_state(SectionState::unsupported);
    return;
  }
  const std::string path = find_cupti(context.options.python);
  const Status loaded =
      path.empty() ? Status(StatusCode::not_found, "no libcupti.so.13 found; REPRISE_CUPTI can name one") : load(path);
  if (!loaded.ok()) {
    context.report.note(loaded.message());
    context.report.set_state(SectionState::unsupported);
    return;
  }
  uint32_t version = 0;
  cupti.cuptiGetVersion(&version);
  context.report.fact("CUPTI", Json{{"file", path}, {"version", version}});
  attempt(context, "launches", [](SectionContext& c) -> Status {
    auto launching = Launching::make(c.device);
    if (!launching.ok()) return launching.status();
    all(c, launching.value());
    return Status::success();
  });
}

}  // namespace reprise::probe
