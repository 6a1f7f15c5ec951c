#include "tools/device/streams/between.h"

#include <memory>
#include <utility>
#include <vector>

#include "tools/device/streams/context.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/operations.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {
namespace {

void add_pending(Context& context, std::vector<Wait>& waits) {
  for (std::shared_ptr<Stream>& stream : context.streams()) {
    const uint64_t position = stream->submitted();
    if (!stream->reached(position)) waits.push_back({std::move(stream), position});
  }
  uint64_t position = 0;
  if (std::shared_ptr<Stream> behind = context.held_back_by(&position); behind != nullptr) {
    waits.push_back({std::move(behind), position});
  }
}

}  // namespace

CUresult submit_between(Context& current, CUcontext to, CUcontext from, const std::function<CUresult()>& copy) {
  Context* const contexts[] = {&current, find_context(to), find_context(from)};
  if (contexts[1] == nullptr || contexts[2] == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::shared_ptr<Stream> stream;
  if (const CUresult result = find_work_stream(current, nullptr, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capturing.load(std::memory_order_relaxed)) return copy();  // in a graph its nodes say what it waits for
  std::vector<Wait> waits;
  for (Context* const context : contexts) add_pending(*context, waits);
  stream->submit(empty_operation(), std::move(waits));
  const CUresult result = copy();
  const uint64_t position = stream->submitted();
  for (Context* const context : contexts) context->hold_back(stream, position);
  return result;
}

}  // namespace reprise::sim
