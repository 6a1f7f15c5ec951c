// Section 3: are several ranges of addresses on one physical memory coherent at operation boundaries? Writes through
// one range, reads through another, by kernels and by copies, on one stream and on two with events. The replay's fixed
// homes stand or fall with this. Programmatic dependent launch, which has no such boundary, is the counter-example.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/lab/probe/measure/mapping.h"
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {
namespace {

constexpr size_t kChunks = 4;
constexpr uint64_t kWordsARound = 1 << 16;  // written and checked in each round: more than an L1 cache holds
constexpr unsigned kMostRounds = 10'000;

// Two views of the same chunks, in another order each, as stitched tensors have them.
struct Views {
  std::vector<Chunk> chunks;
  size_t chunk_bytes = 0;
  std::vector<AddressRange> ranges;  // [0] in order, [1] reversed
  // The same bytes, the first chunk's, by either range.
  CUdeviceptr writer() const { return ranges[0].address(); }
  CUdeviceptr reader() const { return ranges[1].address() + (kChunks - 1) * chunk_bytes; }
};

Result<Views> make_views(const Device& device) {
  Views views;
  const auto bytes = granularity(device, device_memory(device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!bytes.ok()) return bytes.status();
  views.chunk_bytes = std::max<size_t>(bytes.value(), kWordsARound * sizeof(uint32_t));
  views.chunk_bytes = (views.chunk_bytes + bytes.value() - 1) / bytes.value() * bytes.value();
  auto chunks = make_chunks(device, device_memory(device), views.chunk_bytes, kChunks);
  if (!chunks.ok()) return chunks.status();
  views.chunks = std::move(chunks.value());
  std::vector<size_t> order(kChunks);
  for (const bool reversed : {false, true}) {
    std::iota(order.begin(), order.end(), 0);
    if (reversed) std::reverse(order.begin(), order.end());
    auto range = map_view(device, views.chunks, views.chunk_bytes, order);
    if (!range.ok()) return range.status();
    views.ranges.push_back(std::move(range.value()));
  }
  return Result<Views>(std::move(views));
}

struct AccessWay {
  bool kernel_writes;
  bool kernel_reads;
  bool two_streams;
};

class Rounds {
 public:
  static Result<Rounds> make(const Device& device, const Views& views) {
    Rounds rounds(device, views);
    for (const char* name : {"probe_fill", "probe_check", "probe_fill_early", "probe_check_early"}) {
      const auto function = device.kernel(name);
      if (!function.ok()) return function.status();
      rounds.kernels_.push_back(function.value());
    }
    for (int i = 0; i < 2; ++i) {
      auto stream = device.make_stream();
      auto event = device.make_event(CU_EVENT_DISABLE_TIMING);
      auto buffer = device.allocate(kWordsARound * sizeof(uint32_t));
      auto counter = device.allocate(sizeof(uint32_t));
      for (const Status& status : {stream.status(), event.status(), buffer.status(), counter.status()})
        PROBE_TRY(status);
      rounds.streams_.push_back(std::move(stream.value()));
      rounds.events_.push_back(std::move(event.value()));
      rounds.buffers_.push_back(std::move(buffer.value()));
      rounds.counters_.push_back(std::move(counter.value()));
    }
    return Result<Rounds>(std::move(rounds));
  }

  // One write through the first range, one read through the second, checked on the device.
  Status once(const AccessWay& way, uint32_t seed) {
    const CUstream write_stream = streams_[0].get();
    const CUstream read_stream = streams_[way.two_streams ? 1 : 0].get();
    PROBE_TRY(write(way.kernel_writes, seed, write_stream));
    if (way.two_streams) PROBE_TRY(follow(0, write_stream, read_stream));
    PROBE_TRY(read(way.kernel_reads, seed, read_stream));
    if (way.two_streams) PROBE_TRY(follow(1, read_stream, write_stream));
    return Status::success();
  }

  // The same with a reader that is already on the device while the writer runs.
  Status dependent(CUdeviceptr reader, uint32_t seed) {
    PROBE_TRY(kernel_fill(kernels_[2], views_->writer(), seed, streams_[0].get()));
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = 64;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 256;
    config.hStream = streams_[0].get();
    config.attrs = &attribute;
    config.numAttrs = 1;
    uint64_t words = kWordsARound;
    CUdeviceptr counter = counters_[0].get();
    CUdeviceptr unused = counters_[1].get();
    void* arguments[] = {&reader, &words, &seed, &counter, &unused};
    PROBE_CALL(device_->driver(), cuLaunchKernelEx, &config, kernels_[3], arguments, nullptr);
    return Status::success();
  }

  // Words of one round checked as if of another: how many are counted.
  Result<uint32_t> mistaken(uint32_t written, uint32_t expected) {
    PROBE_TRY(clear());
    PROBE_TRY(write(true, written, streams_[0].get()));
    PROBE_TRY(read(true, expected, streams_[0].get()));
    return mismatches();
  }

  Status clear() {
    PROBE_CALL(device_->driver(), cuMemsetD32Async, counters_[0].get(), 0, 1, streams_[0].get());
    PROBE_CALL(device_->driver(), cuStreamSynchronize, streams_[0].get());
    return Status::success();
  }

  Result<uint32_t> mismatches() {
    uint32_t count = 0;
    for (const Stream& stream : streams_) PROBE_CALL(device_->driver(), cuStreamSynchronize, stream.get());
    PROBE_CALL(device_->driver(), cuMemcpyDtoH, &count, counters_[0].get(), sizeof(count));
    return count;
  }

 private:
  Rounds(const Device& device, const Views& views) : device_(&device), views_(&views) {}

  Status kernel_fill(CUfunction function, CUdeviceptr where, uint32_t seed, CUstream stream) {
    return check(device_->driver(), launch(*device_, function, 64, 256, stream, where, kWordsARound, seed),
                 "cuLaunchKernel");
  }
  Status write(bool by_kernel, uint32_t seed, CUstream stream) {
    if (by_kernel) return kernel_fill(kernels_[0], views_->writer(), seed, stream);
    PROBE_TRY(kernel_fill(kernels_[0], buffers_[0].get(), seed, stream));
    PROBE_CALL(device_->driver(), cuMemcpyDtoDAsync, views_->writer(), buffers_[0].get(),
               kWordsARound * sizeof(uint32_t), stream);
    return Status::success();
  }
  Status read(bool by_kernel, uint32_t seed, CUstream stream) {
    CUdeviceptr where = views_->reader();
    if (!by_kernel) {
      where = buffers_[1].get();
      PROBE_CALL(device_->driver(), cuMemcpyDtoDAsync, where, views_->reader(), kWordsARound * sizeof(uint32_t),
                 stream);
    }
    return check(device_->driver(),
                 launch(*device_, kernels_[1], 64, 256, stream, where, kWordsARound, seed, counters_[0].get()),
                 "cuLaunchKernel");
  }
  Status follow(size_t event, CUstream before, CUstream after) {
    PROBE_CALL(device_->driver(), cuEventRecord, events_[event].get(), before);
    PROBE_CALL(device_->driver(), cuStreamWaitEvent, after, events_[event].get(), 0);
    return Status::success();
  }

  const Device* device_;
  const Views* views_;
  std::vector<CUfunction> kernels_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<DeviceBuffer> buffers_;  // what copies write from and read into
  std::vector<DeviceBuffer> counters_;
};

// Calls `once(seed)` for as many rounds as the time allows; a fact tells rounds and mismatching words.
template <typename Once>
Status count_rounds(SectionContext& context, Rounds& rounds, const Limit& limit, const std::string& name, Once&& once) {
  PROBE_TRY(rounds.clear());
  unsigned done = 0;
  while (done < kMostRounds && !(limit.over() && done > 0)) {
    PROBE_TRY(once(0x1000 + done));
    // Bounds how far ahead of the device the host runs, so that the limit is kept.
    if (++done % 128 == 0) PROBE_TRY(context.device.synchronize());
  }
  const auto wrong = rounds.mismatches();
  if (!wrong.ok()) return wrong.status();
  context.report.fact(name, Json{{"rounds", done}, {"mismatches", wrong.value()}, {"words_per_round", kWordsARound}});
  if (done < kMostRounds) context.report.set_partial();
  return Status::success();
}

// A check that cannot fail is worth nothing: words of another round must count as mismatches.
Status self_test(SectionContext& context, Rounds& rounds) {
  const auto wrong = rounds.mistaken(1, 2);
  if (!wrong.ok()) return wrong.status();
  context.report.fact("the check sees stale words", wrong.value() > kWordsARound / 2);
  return Status::success();
}

Status all_ways(SectionContext& context) {
  const auto views = make_views(context.device);
  if (!views.ok()) return views.status();
  auto made = Rounds::make(context.device, views.value());
  if (!made.ok()) return made.status();
  Rounds& rounds = made.value();
  attempt(context, "self-test", [&](SectionContext& c) { return self_test(c, rounds); });
  int left = 10;
  for (const bool two_streams : {false, true}) {
    for (const bool kernel_writes : {true, false}) {
      for (const bool kernel_reads : {true, false}) {
        const AccessWay way{kernel_writes, kernel_reads, two_streams};
        const std::string name =
            fmt::format("{} writes, {} reads, {}", kernel_writes ? "kernel" : "copy", kernel_reads ? "kernel" : "copy",
                        two_streams ? "two streams" : "one stream");
        const Limit limit = context.limit.part(1.0 / left--);
        attempt(context, name.c_str(), [&](SectionContext& c) {
          return count_rounds(c, rounds, limit, name, [&](uint32_t seed) { return rounds.once(way, seed); });
        });
      }
    }
  }
  for (const bool aliased : {false, true}) {
    const std::string name = fmt::format("dependent launch, {}", aliased ? "another range" : "the same range");
    const Limit limit = context.limit.part(1.0 / left--);
    attempt(context, name.c_str(), [&](SectionContext& c) {
      const CUdeviceptr reader = aliased ? views.value().reader() : views.value().writer();
      return count_rounds(c, rounds, limit, name, [&](uint32_t seed) { return rounds.dependent(reader, seed); });
    });
  }
  return Status::success();
}

}  // namespace

void measure_aliasing(SectionContext& context) {
  if (!context.device.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    context.report.note("the device has no virtual memory management");
    context.report.set_state(SectionState::unsupported);
    return;
  }
  attempt(context, "views", all_ways);
}

}  // namespace reprise::probe
