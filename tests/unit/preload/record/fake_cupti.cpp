// A libcupti.so.13 without a device, for the test of the CUPTI source: collects what is pushed, and fills the buffers
// it was given with records as the real one would. Controlled through fake_cupti_*.
#include <cupti.h>

#include <cstring>
#include <set>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
std::set<CUpti_ActivityKind> enabled;
std::vector<std::pair<CUpti_ExternalCorrelationKind, uint64_t>> pushed;
CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;
uint32_t next_correlation = 1;

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t used = 0;
};
Buffer links;  // API records and work come in different buffers, as with the real library
Buffer work;

template <typename T>
void put(Buffer& buffer, const T& record) {
  if (buffer.bytes == nullptr) {
    size_t most = 0;
    request(&buffer.bytes, &buffer.size, &most);
  }
  if (buffer.bytes == nullptr || buffer.size - buffer.used < sizeof(T)) return;
  std::memcpy(buffer.bytes + buffer.used, &record, sizeof(T));
  buffer.used += sizeof(T);
}

void hand_over(Buffer& buffer) {
  if (buffer.bytes != nullptr) complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  buffer = {};
}

}  // namespace

EXPORTED void fake_cupti_refuse(CUpti_ActivityKind kind) { refused = kind; }
EXPORTED unsigned fake_cupti_enabled() { return static_cast<unsigned>(enabled.size()); }

// One kernel, issued now by this thread, that ran from `start` to `end` on CUPTI's clock.
EXPORTED void fake_cupti_kernel(uint64_t start, uint64_t end) {
  const uint32_t correlation = next_correlation++;
  for (const auto& [kind, id] : pushed) {
    CUpti_ActivityExternalCorrelation link{};
    link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    link.externalKind = kind;
    link.externalId = id;
    link.correlationId = correlation;
    put(links, link);
  }
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = start;
  kernel.end = end;
  kernel.correlationId = correlation;
  put(work, kernel);
}

EXPORTED CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = 1'000'000'000'000'000'000;  // far from CLOCK_MONOTONIC, as the real one
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                             CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == refused) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  enabled.insert(kind);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled.erase(kind);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
  hand_over(work);
  hand_over(links);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  auto* at = reinterpret_cast<uint8_t*>(*record);
  if (at == nullptr) {
    at = buffer;
  } else {
    at += (*record)->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? sizeof(CUpti_ActivityKernel10)
                                                                   : sizeof(CUpti_ActivityExternalCorrelation);
  }
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  pushed.emplace_back(kind, id);
  return CUPTI_SUCCESS;
}
EXPORTED CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t* id) {
  *id = pushed.back().second;
  pushed.pop_back();
  return CUPTI_SUCCESS;
}
