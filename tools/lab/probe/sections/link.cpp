// Section 4: what the link between host and device carries: each direction alone and both, by size, kind of host memory
// and number of streams, while kernels run, and what a copy costs by itself. Pinning and the disk are in files beside.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tools/lab/probe/measure/host_memory.h"
#include "tools/lab/probe/measure/lanes.h"
#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/sections/link_host.h"

namespace reprise::probe {
namespace {

constexpr double kWindow = 30e6;  // nanoseconds of traffic in one sample
constexpr unsigned kSamplesOfLanes = 5;
constexpr size_t kPlain = size_t{128} << 20;  // of buffers, where not the size itself is asked about

// Buffers on both sides for one direction; copies walk through them.
struct CopyWay {
  bool to_device = true;
  DeviceBuffer device;
  const HostMemory* host = nullptr;
};

Result<Lane> copy_lane(const Device& device, const CopyWay& way, size_t bytes) {
  auto stream = device.make_stream();
  if (!stream.ok()) return stream.status();
  Lane lane;
  lane.stream = std::move(stream.value());
  lane.issue = [&device, &way, bytes, at = size_t{0}](CUstream queue) mutable -> Status {
    const Driver& driver = device.driver();
    char* host = static_cast<char*>(way.host->data()) + at;
    const CUdeviceptr there = way.device.get() + at;
    at = at + 2 * bytes <= way.host->bytes() ? at + bytes : 0;
    if (way.to_device) PROBE_CALL(driver, cuMemcpyHtoDAsync, there, host, bytes, queue);
    if (!way.to_device) PROBE_CALL(driver, cuMemcpyDtoHAsync, host, there, bytes, queue);
    return Status::success();
  };
  return Result<Lane>(std::move(lane));
}

struct Kernels {
  DeviceBuffer in, out;
  uint64_t words = 0;
  CUfunction stream = nullptr, compute = nullptr;
};

Result<Kernels> make_kernels(const Device& device) {
  Kernels kernels;
  kernels.words = std::min<uint64_t>(uint64_t{256} << 20, device.usable_bytes() / 8) / 4;
  auto in = device.allocate(kernels.words * 4);
  auto out = device.allocate(kernels.words * 4);
  const auto stream = device.kernel("probe_stream");
  const auto compute = device.kernel("probe_compute");
  for (const Status& status : {in.status(), out.status(), stream.status(), compute.status()}) PROBE_TRY(status);
  kernels.in = std::move(in.value());
  kernels.out = std::move(out.value());
  kernels.stream = stream.value();
  kernels.compute = compute.value();
  return Result<Kernels>(std::move(kernels));
}

// `rounds`: of the compute kernel; 0: the bandwidth-bound one.
Result<Lane> kernel_lane(const Device& device, const Kernels& kernels, uint32_t rounds) {
  auto stream = device.make_stream();
  if (!stream.ok()) return stream.status();
  const auto processors =
      static_cast<unsigned>(std::max(1, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  Lane lane;
  lane.stream = std::move(stream.value());
  lane.issue = [&device, &kernels, rounds, processors](CUstream queue) {
    const CUresult result = rounds > 0
                                ? launch(device, kernels.compute, processors * 4, 256, queue, kernels.out.get(), rounds)
                                : launch(device, kernels.stream, processors * 8, 512, queue, kernels.in.get(),
                                         kernels.out.get(), kernels.words);
    return check(device.driver(), result, "cuLaunchKernel");
  };
  return Result<Lane>(std::move(lane));
}

// The compute kernel's rounds that make it last about a millisecond here.
Result<uint32_t> compute_rounds(const Device& device, const Kernels& kernels) {
  constexpr double kWanted = 1e6;
  constexpr uint32_t kMost = 1 << 24;
  for (uint32_t rounds = 64;; rounds *= 4) {
    auto lane = kernel_lane(device, kernels, rounds);
    if (!lane.ok()) return lane.status();
    PROBE_TRY(calibrate(device, lane.value()));
    if (lane.value().item_ns >= kWanted / 2 || rounds >= kMost) return rounds;
  }
}

// What lanes of one name carry, all of them at work. `unit_per_item`: what an item of it counts.
struct NamedLane {
  std::string name;
  std::vector<size_t> lanes;
  double unit_per_item = 1;
  const char* unit = "bytes/s";
  Json parameters;
};

// Measures `lanes` together; `medians`, when given, gets one number for each of `named`.
Status report_lanes(SectionContext& context, std::vector<Lane>& lanes, const std::vector<NamedLane>& named,
                    std::vector<double>* medians = nullptr) {
  std::vector<std::vector<double>> samples(named.size());
  std::vector<double> ignored;
  PROBE_TRY(repeat(context.limit, kSamplesOfLanes, ignored, [&]() -> Result<double> {
    auto rates = run_lanes(context.device, lanes, kWindow);
    if (!rates.ok()) return rates.status();
    for (size_t i = 0; i < named.size(); ++i) {
      double sum = 0;
      for (const size_t lane : named[i].lanes) sum += rates.value()[lane] * named[i].unit_per_item;
      samples[i].push_back(sum);
    }
    return 0.0;
  }));
  for (size_t i = 0; i < named.size(); ++i) {
    drop_warm_up(samples[i]);
    const auto summary = summarize(samples[i]);
    if (medians) medians->push_back(summary ? summary->median : 0);
    context.report.measure(named[i].name, named[i].unit, std::move(samples[i]), named[i].parameters);
  }
  return Status::success();
}

class Link {
 public:
  explicit Link(SectionContext& context) : context_(context), device_(context.device) {}

  // `most`: of each buffer; there are two on either side.
  Status prepare(HostKind kind, size_t most) {
    const size_t bytes =
        std::min({most, static_cast<size_t>(device_.usable_bytes() / 4), usable_host_bytes() / 4}) & ~size_t{0xfffff};
    ways_.clear();
    hosts_.clear();
    for (const bool to_device : {true, false}) {
      auto host = HostMemory::make(device_, kind, bytes);
      auto buffer = device_.allocate(bytes);
      for (const Status& status : {host.status(), buffer.status()}) PROBE_TRY(status);
      hosts_.push_back(std::make_unique<HostMemory>(std::move(host.value())));
      ways_.push_back(CopyWay{to_device, std::move(buffer.value()), hosts_.back().get()});
    }
    bytes_ = bytes;
    kind_ = kind;
    return Status::success();
  }

  // Directions: 1 to the device, 2 to the host, 3 both. With `streams` lanes for each.
  Status copies(int directions, size_t bytes, int streams, std::vector<double>* medians = nullptr) {
    std::vector<Lane> lanes;
    std::vector<NamedLane> named;
    const Json parameters = {{"bytes", bytes}, {"memory", to_string(kind_)}, {"streams_per_direction", streams}};
    for (size_t way = 0; way < 2; ++way) {
      if (!(directions & (1 << way))) continue;
      named.push_back({fmt::format("{}{}", way == 0 ? "H2D" : "D2H", directions == 3 ? " while both" : ""),
                       {},
                       static_cast<double>(bytes),
                       "bytes/s",
                       parameters});
      for (int i = 0; i < streams; ++i) {
        auto lane = copy_lane(device_, ways_[way], bytes);
        if (!lane.ok()) return lane.status();
        named.back().lanes.push_back(lanes.size());
        lanes.push_back(std::move(lane.value()));
      }
    }
    return report_lanes(context_, lanes, named, medians);
  }

  Status sizes(const Limit& limit) {
    PROBE_TRY(prepare(HostKind::pinned, size_t{1} << 30));
    for (size_t bytes = 64 << 10; bytes <= bytes_ && !limit.over(); bytes *= 4) {
      for (const int directions : {1, 2, 3}) PROBE_TRY(copies(directions, bytes, 1));
    }
    return Status::success();
  }

  // The numbers of the machine file: copies of 64 MiB, alone and together; then two streams for each direction.
  Status large() {
    const size_t bytes = std::min(size_t{64} << 20, bytes_);
    std::vector<double> up, down, both;
    PROBE_TRY(copies(1, bytes, 1, &up));
    PROBE_TRY(copies(2, bytes, 1, &down));
    PROBE_TRY(copies(3, bytes, 1, &both));
    Machine unused;
    Machine& machine = kind_ == HostKind::pinned ? context_.machine : unused;
    if (up[0] > 0) machine.h2d_bytes_per_second = up[0];
    if (down[0] > 0) machine.d2h_bytes_per_second = down[0];
    if (both[0] > 0) machine.h2d_together_bytes_per_second = both[0];
    if (both[1] > 0) machine.d2h_together_bytes_per_second = both[1];
    for (const int directions : {1, 2, 3}) PROBE_TRY(copies(directions, bytes, 2));
    return Status::success();
  }

  // How kernels and copies slow each other down.
  Status beside_kernels() {
    const auto kernels = make_kernels(device_);
    if (!kernels.ok()) return kernels.status();
    const size_t bytes = std::min(size_t{16} << 20, bytes_);
    const auto rounds = compute_rounds(device_, kernels.value());
    if (!rounds.ok()) return rounds.status();
    for (const bool compute : {false, true}) {
      if (compute && context_.limit.over()) return {StatusCode::io_error, "no time left for the compute kernel"};
      std::vector<double> rates[2];
      for (const bool copying : {false, true}) {
        std::vector<Lane> lanes;
        auto kernel = kernel_lane(device_, kernels.value(), compute ? rounds.value() : 0);
        if (!kernel.ok()) return kernel.status();
        lanes.push_back(std::move(kernel.value()));
        for (size_t way = 0; way < 2 && copying; ++way) {
          auto lane = copy_lane(device_, ways_[way], bytes);
          if (!lane.ok()) return lane.status();
          lanes.push_back(std::move(lane.value()));
        }
        const double moved = static_cast<double>(kernels.value().words) * 8;  // read and written by the stream kernel
        const std::string kernel_name = compute ? "compute kernel" : "bandwidth-bound kernel";
        std::vector<NamedLane> named = {{kernel_name,
                                         {0},
                                         compute ? 1.0 : moved,
                                         compute ? "kernels/s" : "bytes/s",
                                         {{"beside", copying ? "both copies" : "nothing"}}}};
        for (size_t lane = 1; lane < lanes.size(); ++lane) {
          named.push_back({lane == 1 ? "H2D while both" : "D2H while both",
                           {lane},
                           static_cast<double>(bytes),
                           "bytes/s",
                           {{"beside", kernel_name}}});
        }
        PROBE_TRY(report_lanes(context_, lanes, named, &rates[copying]));
      }
      if (!compute && rates[0][0] > 0) context_.machine.hbm_bytes_per_second = rates[0][0];
      if (!compute && rates[1][0] > 0) context_.machine.compute_slowdown_while_copying = rates[0][0] / rates[1][0];
    }
    return Status::success();
  }

  Status copy_costs() {
    const Driver& driver = device_.driver();
    auto stream = device_.make_stream();
    if (!stream.ok()) return stream.status();
    const CUstream queue = stream.value().get();
    constexpr unsigned kCopies = 200;
    constexpr size_t kBytes = 4096;
    std::vector<double> submit, each;
    PROBE_TRY(repeat(context_.limit, 20, each, [&]() -> Result<double> {
      Stopwatch watch;
      auto time = device_time(device_, queue, [&]() -> Status {
        for (unsigned i = 0; i < kCopies; ++i)
          PROBE_CALL(driver, cuMemcpyHtoDAsync, ways_[0].device.get(), hosts_[0]->data(), kBytes, queue);
        submit.push_back(watch.nanoseconds() / kCopies);
        return Status::success();
      });
      if (time.ok()) time.value() /= kCopies;
      return time;
    }));
    drop_warm_up(submit);
    if (const auto summary = summarize(each)) context_.machine.copy_latency_ns = summary->median;
    context_.report.measure("copy call", "ns", std::move(submit), {{"bytes", kBytes}});
    context_.report.measure("copy after copy, one stream", "ns", std::move(each), {{"bytes", kBytes}});
    return Status::success();
  }

  // Many middling copies as one call and as many.
  Status batches() {
    const Driver& driver = device_.driver();
    constexpr size_t kCopies = 64;
    const size_t bytes = std::min<size_t>(256 << 10, bytes_ / kCopies);
    auto stream = device_.make_stream();
    if (!stream.ok()) return stream.status();
    std::vector<CUdeviceptr> to, from;
    std::vector<size_t> sizes(kCopies, bytes);
    for (size_t i = 0; i < kCopies; ++i) {
      to.push_back(ways_[0].device.get() + i * bytes);
      from.push_back(reinterpret_cast<CUdeviceptr>(hosts_[0]->data()) + i * bytes);
    }
    CUmemcpyAttributes attributes = {};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    attributes.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    size_t first = 0;
    for (const bool batch : {false, true}) {
      std::vector<double> samples;
      PROBE_TRY(repeat(context_.limit, 20, samples, [&] {
        return device_time(device_, stream.value().get(), [&]() -> Status {
          if (batch)
            PROBE_CALL(driver, cuMemcpyBatchAsync, to.data(), from.data(), sizes.data(), kCopies, &attributes, &first,
                       1, stream.value().get());
          for (size_t i = 0; i < kCopies && !batch; ++i)
            PROBE_CALL(driver, cuMemcpyAsync, to[i], from[i], bytes, stream.value().get());
          return Status::success();
        });
      }));
      for (double& sample : samples) sample = static_cast<double>(bytes * kCopies) / sample * 1e9;
      context_.report.measure(batch ? "64 copies, one batch" : "64 copies, one by one", "bytes/s", std::move(samples),
                              {{"bytes", bytes}});
    }
    return Status::success();
  }

 private:
  SectionContext& context_;
  const Device& device_;
  std::vector<std::unique_ptr<HostMemory>> hosts_;
  std::vector<CopyWay> ways_;
  size_t bytes_ = 0;
  HostKind kind_ = HostKind::pinned;
};

}  // namespace

void measure_link(SectionContext& context) {
  // Before anything is pinned here: what plans for this machine may keep on the host.
  if (const size_t bytes = available_host_bytes()) context.machine.host_bytes = static_cast<double>(bytes);
  {
    Link link(context);
    attempt(context, "pinned memory", [&](SectionContext&) { return link.prepare(HostKind::pinned, kPlain); });
    if (context.report.state() == SectionState::done) {
      attempt(context, "large copies", [&](SectionContext&) { return link.large(); });
      attempt(context, "copy costs", [&](SectionContext&) { return link.copy_costs(); });
      // What the machine file takes comes first, and the disk does not wait for kernels that may be slow.
      attempt(context, "disk", [](SectionContext& c) { return measure_disk(c, c.limit.part(0.35)); });
      attempt(context, "beside kernels", [&](SectionContext&) { return link.beside_kernels(); });
      attempt(context, "batches", [&](SectionContext&) { return link.batches(); });
    }
    for (const HostKind kind : {HostKind::registered_huge_pages, HostKind::write_combined}) {
      attempt(context, to_string(kind), [&](SectionContext&) -> Status {
        PROBE_TRY(link.prepare(kind, kPlain));
        return link.large();
      });
    }
    attempt(context, "sizes", [&](SectionContext& c) { return link.sizes(c.limit.part(0.4)); });
  }
  attempt(context, "pinning", [](SectionContext& c) { return measure_pinning(c, c.limit.part(0.5)); });
}

}  // namespace reprise::probe
