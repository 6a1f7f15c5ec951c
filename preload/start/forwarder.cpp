#include "preload/start/forwarder.h"

#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>

#include "preload/driver/driver.h"
#include "preload/driver/graph_memory.h"
#include "preload/driver/taken.h"
#include "preload/frameworks/torch_allocator.h"
#include "preload/measure/own_link.h"
#include "preload/start/recorded_account.h"
#include "preload/start/writer_streams.h"

namespace reprise {
namespace {

void record_rates(const LinkRates& rates, Recorder& recorder) noexcept {
#define REPRISE_MEASURED(field, key, ...) \
  if (rates.field > 0) recorder.info(key, rates.field);
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
}

// What both halves know of the recording.
struct ForwardedRecording {
  Recorder* const recorder;
  std::atomic<int> captures{0};
  std::atomic<bool> launched{false};
  WriterStreams writers;

  explicit ForwardedRecording(Recorder* the_recorder) noexcept : recorder(the_recorder) {}
  bool goes_on() const noexcept { return recorder != nullptr && !recorder->paused(); }
};

class ForwardedMemory final : public MemoryHandler {
 public:
  static constexpr uint32_t kMostLooks = 4096;

  explicit ForwardedMemory(ForwardedRecording* recording) noexcept : recording_(*recording) {}

  CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept override {
    if (recording_.recorder != nullptr) account_.open(call.device);
    const CUresult result = allocate_counted(call, address);
    if (recording_.recorder != nullptr && result == CUDA_SUCCESS)
      account_.allocated(call.allocation, call.size, call.device);
    return result;
  }

  CUresult release(const FreeCall& call) noexcept override {
    const MemoryCall counted(this);
    recording_.writers.forget(call.allocation);
    account_.freed(call.allocation);
    return call.stream_ordered ? driver().cuMemFreeAsync(call.address, call.stream) : driver().cuMemFree(call.address);
  }

  CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept override {
    return driver().cuMemGetInfo(free_bytes, total_bytes);
  }
  CUresult total_memory(size_t* bytes, CUdevice device) noexcept override {
    return driver().cuDeviceTotalMem(bytes, device);
  }

  // What the driver takes around the program's own memory is told to plans, which have to leave room for it: by looks
  // around the first calls of their kind, not around each launch of which nothing can be told. Where
  // another thread asks for memory meanwhile, they say nothing.
  BeforeTaking before_taking() noexcept override {
    if (!recording_.goes_on() || recording_.captures.load() != 0 || looks_.fetch_add(1) >= kMostLooks) return {};
    const uint64_t ended = memory_calls_ended_.load();
    if (memory_calls_.load() != ended) return {};
    CUdevice device = 0;
    if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
    return {look_before_call(device, graph_bytes(device)), ended};
  }
  void after_taking(const BeforeTaking& before) noexcept override {
    CUdevice device = 0;
    if (before.look.free == 0 || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
    const TakenByCall taken = taken_by_call(before.look, device, graph_bytes(device));
    if (memory_calls_.load() == before.submitted) account_.taken(taken.bytes);
  }

  CUresult before_beside(BesideCall* call) noexcept override {
    const uint64_t ended = memory_calls_ended_.load();
    call->promised = ended;
    if (memory_calls_.load() == ended) call->free = free_bytes_of(call->device);
    return CUDA_SUCCESS;
  }
  void after_beside(const BesideCall& call, CUresult result) noexcept override {
    std::optional<uint64_t> free;
    if (memory_calls_.load() == call.promised) free = free_bytes_of(call.device);
    if (call.kind == BesideKind::graph) graphs_.captured();
    if (result == CUDA_SUCCESS) account_.beside(call, free);
    look_at_graphs(call.device);
  }

  // Of the device that such a graph is first made on.
  void graph_memory(uint32_t instantiated) noexcept override {
    CUdevice device = 0;
    if (instantiated != 0 && driver().cuCtxGetDevice(&device) == CUDA_SUCCESS) look_at_graphs(device);
    graphs_.instantiated(instantiated);
    look_at_graphs(graph_device_.load());
  }

  // Work may be on the device that waits for the program.
  void note_launch(const Command& command) noexcept {
    if (link_.load(std::memory_order_relaxed) != Link::settled && may_wait_for_program(command.op))
      recording_.launched.store(true);
  }
  void tell() noexcept {
    graphs_.look_back(graph_device_.load());
    account_.graphs(graphs_.most_bytes());
    if (recording_.recorder != nullptr) account_.tell(*recording_.recorder, graphs_);
  }

 private:
  // A call that gives the program memory or takes it back, under way.
  class MemoryCall {
   public:
    explicit MemoryCall(ForwardedMemory* forwarder) noexcept : forwarder_(*forwarder) {
      forwarder_.memory_calls_.fetch_add(1);
    }
    ~MemoryCall() { forwarder_.memory_calls_ended_.fetch_add(1); }
    MemoryCall(const MemoryCall&) = delete;
    MemoryCall& operator=(const MemoryCall&) = delete;

   private:
    ForwardedMemory& forwarder_;
  };

  CUresult allocate_counted(const AllocateCall& call, CUdeviceptr* address) noexcept {
    const MemoryCall counted(this);
    if (link_.load(std::memory_order_acquire) == Link::settled) return allocate_now(call, address);
    settle_link();
    const Link before = link_.load(std::memory_order_acquire);
    const CUresult result = allocate_now(call, address);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || before == Link::settled) return result;
    // What another thread measures with may be what is missing.
    while (link_.load(std::memory_order_acquire) == Link::measuring) ::usleep(1000);
    return allocate_now(call, address);
  }

  // Before the program's first device memory: there is room for ours then, nothing of the program waits behind it on
  // the device, and it is gone before the program can ask what is free. One thread measures; others do not wait for it.
  // While a capture is open it is put off. What runs already may wait for the program: then nothing is measured.
  void settle_link() noexcept {
    if (recording_.captures.load() != 0) return;
    Link open = Link::open;
    if (!link_.compare_exchange_strong(open, Link::measuring, std::memory_order_acq_rel)) return;
    if (recording_.recorder != nullptr && !recording_.launched.load())
      record_rates(measure_own_link(), *recording_.recorder);
    link_.store(Link::settled, std::memory_order_release);
  }

  static CUresult allocate_now(const AllocateCall& call, CUdeviceptr* address) noexcept {
    switch (call.origin) {
      case trace::Origin::async:
        return driver().cuMemAllocAsync(address, call.size, call.stream);
      case trace::Origin::pool:
        return driver().cuMemAllocFromPoolAsync(address, call.size, call.pool, call.stream);
      default:
        return driver().cuMemAlloc(address, call.size);
    }
  }

  void look_at_graphs(CUdevice device) noexcept {
    if (!graphs_.any()) {
      graph_device_.store(device);
      return;
    }
    graphs_.look(graph_device_.load());
    account_.graphs(graphs_.bytes());
  }

  ForwardedRecording& recording_;
  std::atomic<uint64_t> memory_calls_{0};
  std::atomic<uint64_t> memory_calls_ended_{0};
  RecordedAccount account_;
  std::atomic<uint32_t> looks_{0};
  enum class Link : uint8_t { open, measuring, settled };  // settled: measured, or not to be
  std::atomic<Link> link_{Link::open};
  GraphMemory graphs_;
  std::atomic<CUdevice> graph_device_{0};
};

class ForwardedOrder final : public OrderHandler {
 public:
  ForwardedOrder(ForwardedRecording* recording, ActivitySource* activity, ForwardedMemory* memory) noexcept
      : recording_(*recording), activity_(activity), memory_(*memory) {}

  CUresult submit(const Command& command) noexcept override {
    memory_.note_launch(command);
    if (reads_back() && !command.captured) recording_.writers.record(command);
    if (!command.first_of_shape || command.captured) return issue(command);
    const MemoryHandler::BeforeTaking before = memory_.before_taking();
    const CUresult result = issue(command);
    memory_.after_taking(before);
    return result;
  }

  CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept override {
    return flags == 0 ? driver().cuEventRecord(event, stream) : driver().cuEventRecordWithFlags(event, stream, flags);
  }
  CUresult event_query(CUevent event) noexcept override { return driver().cuEventQuery(event); }
  CUresult event_synchronize(CUevent event) noexcept override { return collected(driver().cuEventSynchronize(event)); }
  CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept override {
    return driver().cuEventElapsedTime(milliseconds, start, end);
  }
  CUresult event_destroy(CUevent event) noexcept override { return driver().cuEventDestroy(event); }
  CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept override {
    return driver().cuStreamWaitEvent(stream, event, flags);
  }
  CUresult stream_query(CUstream stream) noexcept override { return driver().cuStreamQuery(stream); }
  CUresult stream_synchronize(CUstream stream) noexcept override {
    return collected(driver().cuStreamSynchronize(stream));
  }
  CUresult stream_destroy(CUstream stream) noexcept override {
    if (recording_.captures.load() == 0) recording_.writers.stream_ends(stream);
    return driver().cuStreamDestroy(stream);
  }
  CUresult context_synchronize() noexcept override { return collected(driver().cuCtxSynchronize()); }

  CUresult before_ordered(const char*, bool) noexcept override { return CUDA_SUCCESS; }
  CUresult capture_begin() noexcept override {
    recording_.captures.fetch_add(1);
    return CUDA_SUCCESS;
  }
  CUresult before_joining_capture() noexcept override { return CUDA_SUCCESS; }
  void capture_end() noexcept override { recording_.captures.fetch_sub(1); }

  bool reads_back() const noexcept override { return recording_.goes_on(); }
  bool read_back(const ReadBack& request) noexcept override { return recording_.writers.read_back(request); }

  // The program ends, and tells of what it has run so far.
  void finish() noexcept {
    if (activity_ == nullptr) return;
    driver().cuCtxSynchronize();  // what is still running has no end time yet
    collect();
    activity_->stop();
    collect();
  }
  void abandon() noexcept { activity_ = nullptr; }

 private:
  CUresult issue(const Command& command) noexcept {
    if (activity_ == nullptr || command.captured) return command.issue(command.payload, command.stream);
    activity_->push(command.sequence, command.stream);
    const CUresult result = command.issue(command.payload, command.stream);
    activity_->pop(command.sequence, command.stream);
    return result;
  }
  CUresult collected(CUresult result) noexcept {
    collect();
    return result;
  }
  void collect() noexcept {
    if (activity_ == nullptr || recording_.recorder == nullptr || collecting_.exchange(true, std::memory_order_acquire))
      return;
    recording_.recorder->collect(*activity_);
    collecting_.store(false, std::memory_order_release);
  }

  ForwardedRecording& recording_;
  ActivitySource* activity_;
  ForwardedMemory& memory_;
  std::atomic<bool> collecting_{false};
};

// A base, so that the halves are there before the Handler names them.
struct ForwarderParts {
  ForwardedRecording recording;
  ForwardedMemory memory_half{&recording};
  ForwardedOrder order_half;

  ForwarderParts(Recorder* recorder, ActivitySource* activity) noexcept
      : recording(recorder), order_half(&recording, activity, &memory_half) {}
};

class Forwarder final : private ForwarderParts, public Handler {
 public:
  Forwarder(Recorder* recorder, ActivitySource* activity) noexcept
      : ForwarderParts(recorder, activity), Handler(&order_half, &memory_half) {}

  void finish() noexcept override {
    say_what_backend_lacks();
    memory_half.tell();
    order_half.finish();
  }
  void abandon() noexcept override { order_half.abandon(); }
};

}  // namespace

Handler* make_forwarder(Recorder* recorder, ActivitySource* activity) noexcept {
  return new (std::nothrow) Forwarder(recorder, activity);
}

}  // namespace reprise
