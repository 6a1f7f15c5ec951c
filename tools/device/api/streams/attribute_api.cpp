// Stream attributes: kept and told, as nothing here depends on caches, priorities or memory domains.
#include <map>
#include <mutex>

#include "tools/device/streams/enter.h"
#include "tools/device/streams/stream.h"

using namespace reprise::sim;

namespace {

struct StreamAttributes {
  std::mutex mutex;
  std::map<uint32_t, std::map<int, CUstreamAttrValue>> by_stream;  // by Stream::id
};

StreamAttributes& attributes() {
  static StreamAttributes& instance = *new StreamAttributes;
  return instance;
}

bool is_stream_attribute(CUstreamAttrID attribute) {
  return attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
         attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

}  // namespace

extern "C" {

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(value != nullptr && is_stream_attribute(attr), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  const std::lock_guard lock(attributes().mutex);
  attributes().by_stream[stream->id][attr] = *value;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(value_out != nullptr && is_stream_attribute(attr), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  const std::lock_guard lock(attributes().mutex);
  const auto& own = attributes().by_stream[stream->id];
  const auto found = own.find(attr);
  *value_out = found == own.end() ? CUstreamAttrValue{} : found->second;
  if (found == own.end() && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) value_out->priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Stream> to;
  std::shared_ptr<Stream> from;
  SIM_TRY(resolve_stream(*context, dst, &to));
  SIM_TRY(resolve_stream(*context, src, &from));
  const std::lock_guard lock(attributes().mutex);
  const auto copy = attributes().by_stream[from->id];
  attributes().by_stream[to->id] = copy;
  return CUDA_SUCCESS;
}

}  // extern "C"
