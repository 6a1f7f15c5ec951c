// Activity records of CUPTI. The library is opened at run time (its version must fit the driver's, and most programs
// need none); no subscriber is registered, so profilers that only subscribe keep working. Another user of the activity
// API in this process makes start() fail.
#include <cupti.h>
#include <sys/mman.h>

#include <atomic>
#include <ctime>
#include <new>

#include "preload/driver/resolve.h"
#include "preload/record/activity/cupti_records.h"
#include "preload/record/activity/sources.h"

namespace reprise {
namespace {

constexpr size_t kBufferBytes = 1u << 20;
constexpr uint32_t kBuffers = 32;  // about 120 thousand ops between two collections
constexpr auto kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
// The first wave (below version 18, CUDA 11.8) had other record layouts; what comes after CUDA 13 is unknown.
constexpr uint32_t kOldestVersion = 18;
constexpr uint32_t kNewestVersion = 139999;
// External ids are attached to records of driver calls, so those are needed, too.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
};

struct CuptiTable {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityPushExternalCorrelationId) push;
  decltype(&cuptiActivityPopExternalCorrelationId) pop;
};

template <typename Function>
bool find(void* library, const char* name, Function** entry) noexcept {
  *entry = reinterpret_cast<Function*>(library_symbol(library, name));
  return *entry != nullptr;
}

bool load(CuptiTable* table) noexcept {
  for (const char* name : {"libcupti.so.13", "libcupti.so", "libcupti.so.12"}) {
    void* library = load_library(name);
    uint32_t version = 0;
    if (library != nullptr && find(library, "cuptiGetVersion", &table->get_version) &&
        find(library, "cuptiGetTimestamp", &table->get_timestamp) &&
        find(library, "cuptiActivityRegisterCallbacks", &table->register_callbacks) &&
        find(library, "cuptiActivityEnable", &table->enable) &&
        find(library, "cuptiActivityDisable", &table->disable) &&
        find(library, "cuptiActivityFlushAll", &table->flush_all) &&
        find(library, "cuptiActivityGetNextRecord", &table->next_record) &&
        find(library, "cuptiActivityPushExternalCorrelationId", &table->push) &&
        find(library, "cuptiActivityPopExternalCorrelationId", &table->pop) &&
        table->get_version(&version) == CUPTI_SUCCESS && version >= kOldestVersion && version <= kNewestVersion) {
      return true;
    }
  }
  return false;
}

// A buffer that CUPTI fills. Completed ones wait on a lock-free stack for the collector.
struct Buffer {
  std::atomic<bool> taken{false};
  uint8_t* bytes = nullptr;
  size_t valid = 0;
  Buffer* next = nullptr;
};

struct Buffers {
  Buffer all[kBuffers];
  std::atomic<Buffer*> completed{nullptr};

  bool create() noexcept {
    void* memory = ::mmap(nullptr, kBuffers * kBufferBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    for (uint32_t i = 0; i < kBuffers; ++i) all[i].bytes = static_cast<uint8_t*>(memory) + i * kBufferBytes;
    return true;
  }
};
Buffers buffers;  // CUPTI's callbacks carry no user pointer

// On any thread. Without a free buffer CUPTI drops records, which costs timings, not correctness.
void CUPTIAPI on_buffer_requested(uint8_t** bytes, size_t* size, size_t* max_records) {
  *bytes = nullptr;
  *size = 0;
  *max_records = 0;
  for (Buffer& buffer : buffers.all) {
    bool expected = false;
    if (!buffer.taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) continue;
    *bytes = buffer.bytes;
    *size = kBufferBytes;
    return;
  }
}

void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* bytes, size_t, size_t valid) {
  if (bytes == nullptr) return;
  Buffer& buffer = buffers.all[static_cast<size_t>(bytes - buffers.all[0].bytes) / kBufferBytes];
  buffer.valid = valid;
  buffer.next = buffers.completed.load(std::memory_order_relaxed);
  while (!buffers.completed.compare_exchange_weak(buffer.next, &buffer, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
  }
}

class CuptiSource final : public ActivitySource {
 public:
  bool create() noexcept { return load(&cupti_) && buffers.create() && records_.create(); }

  bool start() noexcept override {
    if (cupti_.register_callbacks(on_buffer_requested, on_buffer_completed) != CUPTI_SUCCESS) return false;
    for (const CUpti_ActivityKind kind : kKinds) {
      if (cupti_.enable(kind) == CUPTI_SUCCESS) continue;
      disable_all();
      return false;
    }
    if (!measure_offset()) {
      disable_all();
      return false;
    }
    running_.store(true, std::memory_order_relaxed);
    return true;
  }

  void stop() noexcept override {
    if (!running_.exchange(false, std::memory_order_relaxed)) return;
    disable_all();
  }

  bool running() const noexcept override { return running_.load(std::memory_order_relaxed); }

  void push(uint64_t id, CUstream) noexcept override { cupti_.push(kOurs, id); }
  void pop(uint64_t, CUstream) noexcept override {
    uint64_t last = 0;
    cupti_.pop(kOurs, &last);
  }

  void collect(ActivityCallback callback, void* user) noexcept override {
    cupti_.flush_all(0);
    Buffer* next = nullptr;
    for (Buffer* buffer = buffers.completed.exchange(nullptr, std::memory_order_acquire); buffer != nullptr;
         buffer = next) {
      next = buffer->next;
      CUpti_Activity* record = nullptr;
      while (cupti_.next_record(buffer->bytes, buffer->valid, &record) == CUPTI_SUCCESS) {
        records_.add(record, offset_ns_);
      }
      buffer->taken.store(false, std::memory_order_release);
    }
    records_.deliver(callback, user);
  }

  const char* name() const noexcept override { return "cupti"; }

 private:
  void disable_all() noexcept {
    for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  }

  // CUPTI's clock counts from another origin than CLOCK_MONOTONIC.
  bool measure_offset() noexcept {
    uint64_t theirs = 0;
    timespec ours{};
    if (cupti_.get_timestamp(&theirs) != CUPTI_SUCCESS) return false;
    ::clock_gettime(CLOCK_MONOTONIC, &ours);
    offset_ns_ = ours.tv_sec * 1'000'000'000 + ours.tv_nsec - static_cast<int64_t>(theirs);
    return true;
  }

  CuptiTable cupti_{};
  CuptiRecords records_;
  int64_t offset_ns_ = 0;
  std::atomic<bool> running_{false};
};

}  // namespace

ActivitySource* cupti_activity_source() noexcept {
  static ActivitySource* const source = []() -> ActivitySource* {
    auto* made = new (std::nothrow) CuptiSource;
    return made != nullptr && made->create() ? made : nullptr;
  }();
  return source;
}

}  // namespace reprise
