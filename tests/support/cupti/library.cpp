// A libcupti.so.13 without a device, as strict as NVIDIA's documentation allows: one client, a buffer for each thread,
// a crash on a declined request before CUDA 12.9 and on calls after its exit handlers, records of what is enabled and
// of nothing else, buffers for whoever registered last. Tests make work with fake_cupti_kernel() and calls with
// fake_cupti_call(); under the simulated device its own records are the work. REPRISE_TEST_CUPTI_VERSION: the version;
// REPRISE_TEST_CUPTI_REPORT: a file for what was left at the program's end.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tests/support/cupti/controls.h"
#include "tests/support/cupti/device.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t kMayDecline = 27;  // CUDA 12.9

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t used = 0;
};

struct State {
  std::recursive_mutex mutex;  // also while callbacks run, which must not wait for another thread in here
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::map<uint64_t, Buffer> buffers;  // by thread
  std::set<CUpti_ActivityKind> enabled;
  std::set<CUpti_CallbackId> enabled_calls;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;
  const void* subscriber = nullptr;
  uint32_t next_correlation = 1;
  bool links_need_all_calls = false;
  bool ended = false;
  FakeCuptiCounts counts{};
};
State& state() {
  static State& instance = *new State;
  return instance;
}
// The system uses its own numbers again.
uint64_t this_thread() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}
thread_local std::vector<std::pair<CUpti_ExternalCorrelationKind, uint64_t>> pushed;

uint32_t version() {
  const char* const text = std::getenv("REPRISE_TEST_CUPTI_VERSION");
  return text != nullptr ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : CUPTI_API_VERSION;
}

void hand_over(Buffer& buffer) {
  State& s = state();
  if (buffer.bytes != nullptr) {
    --s.counts.outstanding;
    s.complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  }
  buffer = {};
}

bool request(Buffer& buffer) {
  State& s = state();
  size_t most = 0;
  s.request(&buffer.bytes, &buffer.size, &most);
  if (buffer.bytes != nullptr) {
    ++s.counts.requested;
    ++s.counts.outstanding;
    return true;
  }
  if (version() < kMayDecline) {
    std::fprintf(stderr, "fake CUPTI: a request for a buffer was declined\n");
    std::abort();
  }
  ++s.counts.dropped;
  return false;
}

template <typename T>
void put(const T& record) {
  Buffer& buffer = state().buffers[this_thread()];
  if (buffer.bytes != nullptr && buffer.size - buffer.used < sizeof(T)) hand_over(buffer);
  if (buffer.bytes == nullptr && !request(buffer)) return;
  std::memcpy(buffer.bytes + buffer.used, &record, sizeof(T));
  buffer.used += sizeof(T);
  ++state().counts.records;
}

bool enabled(CUpti_ActivityKind kind) { return state().enabled.count(kind) != 0; }

void put_link(CUpti_ExternalCorrelationKind kind, uint64_t id, uint32_t correlation) {
  if (!enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  if (state().links_need_all_calls && !enabled(CUPTI_ACTIVITY_KIND_DRIVER)) return;
  CUpti_ActivityExternalCorrelation link{};
  link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  link.externalKind = kind;
  link.externalId = id;
  link.correlationId = correlation;
  put(link);
}

// A call of the driver by this thread: its record, and the ids that were pushed.
uint32_t call(CUpti_CallbackId id) {
  State& s = state();
  const uint32_t correlation = s.next_correlation++;
  if (!enabled(CUPTI_ACTIVITY_KIND_DRIVER) && s.enabled_calls.count(id) == 0) return correlation;
  CUpti_ActivityAPI record{};
  record.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  record.cbid = id;
  record.correlationId = correlation;
  put(record);
  for (const auto& [kind, external] : pushed) put_link(kind, external, correlation);
  return correlation;
}

void put_kernel(uint32_t correlation, uint64_t start, uint64_t end) {
  if (!enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = start;
  kernel.end = end;
  kernel.correlationId = correlation;
  put(kernel);
}

struct NamedCall {
  CUpti_CallbackId id;
  const char* name;
};
constexpr NamedCall kCalls[] = {
#define CALL(name) \
  { CUPTI_DRIVER_TRACE_CBID_##name, #name }
    CALL(cuEventQuery),   CALL(cuEventRecord),        CALL(cuStreamSynchronize),
    CALL(cuLaunchKernel), CALL(cuMemcpyHtoDAsync_v2),
#undef CALL
};

size_t size_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    default:
      return sizeof(CUpti_ActivityExternalCorrelation);
  }
}

// What calls later finds a library that has ended.
[[maybe_unused]] const int at_exit = std::atexit([] { state().ended = true; });
void require_life(const char* call) {
  if (!state().ended) return;
  std::fprintf(stderr, "fake CUPTI: %s after the library's exit handlers\n", call);
  std::abort();
}

__attribute__((destructor)) void report() {
  const char* const path = std::getenv("REPRISE_TEST_CUPTI_REPORT");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  const FakeCuptiCounts counts = fake_cupti_counts();
  std::fprintf(file, "{\"enabled\": %u, \"subscribed\": %u, \"works\": %lu, \"records\": %lu}\n", counts.enabled,
               counts.subscribed, counts.works, counts.records);
  std::fclose(file);
}

// Another tool of the process: a profiler of the program's own.
const char kOther = 0;
std::set<uint8_t*>& others_buffers() {
  static std::set<uint8_t*>& instance = *new std::set<uint8_t*>;
  return instance;
}
void CUPTIAPI other_request(uint8_t** bytes, size_t* size, size_t* most) {
  *size = 4096;
  *most = 0;
  *bytes = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  others_buffers().insert(*bytes);
}
void CUPTIAPI other_complete(CUcontext, uint32_t, uint8_t* bytes, size_t, size_t) {
  if (others_buffers().erase(bytes) == 0) {
    ++state().counts.foreign;
  } else {
    std::free(bytes);
  }
}

}  // namespace

EXPORTED void fake_cupti_refuse(CUpti_ActivityKind kind) { state().refused = kind; }
EXPORTED void fake_cupti_links_need_all_calls(bool value) { state().links_need_all_calls = value; }
EXPORTED FakeCuptiCounts fake_cupti_counts() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.counts.enabled = static_cast<unsigned>(s.enabled.size() + s.enabled_calls.size());
  s.counts.subscribed = s.subscriber != nullptr ? 1 : 0;
  return s.counts;
}
EXPORTED void fake_cupti_call(CUpti_CallbackId id) {
  const std::lock_guard lock(state().mutex);
  call(id);
}
EXPORTED void fake_cupti_kernel(uint64_t start, uint64_t end) {
  const std::lock_guard lock(state().mutex);
  ++state().counts.works;
  put_kernel(call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel), start, end);
}
EXPORTED bool fake_cupti_other_subscribes() {
  CUpti_SubscriberHandle handle = nullptr;
  return cuptiSubscribe(&handle, nullptr, const_cast<char*>(&kOther)) == CUPTI_SUCCESS;
}
EXPORTED void fake_cupti_other_leaves() { state().subscriber = nullptr; }
EXPORTED void fake_cupti_other_registers() { cuptiActivityRegisterCallbacks(other_request, other_complete); }

EXPORTED CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* found) {
  *found = version();
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = fake_device_now();
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  for (const NamedCall& one : kCalls) {
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && one.id == id) return *name = one.name, CUPTI_SUCCESS;
  }
  return CUPTI_ERROR_INVALID_PARAMETER;
}
EXPORTED CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void* user) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (s.subscriber != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  s.subscriber = user != nullptr ? user : &s;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&s);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  require_life("cuptiUnsubscribe");
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (subscriber != reinterpret_cast<CUpti_SubscriberHandle>(&s)) return CUPTI_ERROR_INVALID_PARAMETER;
  s.subscriber = nullptr;
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                             CUpti_BuffersCallbackCompleteFunc completed) {
  const std::lock_guard lock(state().mutex);
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  state().request = requested;
  state().complete = completed;
  return CUPTI_SUCCESS;
}
// Records of the device's work, as far as their kinds are enabled now.
void take_from_device() {
  fake_device_read([](uint64_t id, uint64_t start, uint64_t end) {
    ++state().counts.works;
    const uint32_t correlation = state().next_correlation++;
    if (id != 0) put_link(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, id, correlation);
    put_kernel(correlation, start, end);
  });
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(state().mutex);
  if (kind == state().refused) return CUPTI_ERROR_NOT_COMPATIBLE;
  state().enabled.insert(kind);
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
    state().enabled_calls.clear();  // documented: it overrides what was set before
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) fake_device_enable(true);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  require_life("cuptiActivityDisable");
  const std::lock_guard lock(state().mutex);
  take_from_device();  // what ran until now was enabled
  state().enabled.erase(kind);
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER) state().enabled_calls.clear();
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) fake_device_enable(false);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable) {
  const std::lock_guard lock(state().mutex);
  if (enable != 0) {
    state().enabled_calls.insert(id);
  } else {
    state().enabled_calls.erase(id);
  }
  return CUPTI_SUCCESS;
}
// A buffer with a record of work that is not complete is kept unless the flush is a forced one. Under this variable
// there always is some in each thread's last buffer, as in programs that go on working.
bool busy() { return std::getenv("REPRISE_TEST_CUPTI_BUSY") != nullptr; }
EXPORTED CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flags) {
  require_life("cuptiActivityFlushAll");
  State& s = state();
  const std::lock_guard lock(s.mutex);
  take_from_device();
  if ((flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == 0 && busy()) return CUPTI_SUCCESS;
  for (auto& [thread, buffer] : s.buffers) hand_over(buffer);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  auto* at = reinterpret_cast<uint8_t*>(*record);
  at = at == nullptr ? buffer : at + size_of(*record);
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  pushed.emplace_back(kind, id);
  fake_device_push(id);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t* id) {
  *id = pushed.back().second;
  pushed.pop_back();
  fake_device_pop();
  return CUPTI_SUCCESS;
}
