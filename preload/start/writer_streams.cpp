#include "preload/start/writer_streams.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise {
namespace {

constexpr uint64_t kPatience = 20'000'000;  // ns for another thread's read, when a stream ends

template <typename List, typename Item>
void add_once(List& list, const Item& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace

WriterStreams::Stream WriterStreams::named(CUcontext context, CUstream stream) noexcept {
  return {context, stream, stream == CU_STREAM_PER_THREAD ? pthread_self() : pthread_t{}};
}

void WriterStreams::record_other(const Command& command) noexcept {
  const Stream stream = named(command.context, command.stream);
  if (first_known_.load(std::memory_order_acquire) && !first_ended_.load(std::memory_order_relaxed) &&
      stream == first_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  add_once(all_, stream);
  if (all_.size() == 1 && !first_known_.load(std::memory_order_relaxed)) {
    first_ = stream;
    first_known_.store(true, std::memory_order_release);
    return;
  }
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = command.accesses[i];
    if ((access.mode & trace::kAccessWrite) != 0) add_once(writers_[access.allocation], stream);
  }
}

void WriterStreams::forget(uint64_t allocation) noexcept {
  const std::lock_guard lock(mutex_);
  writers_.erase(allocation);
}

void WriterStreams::stream_ends(CUstream stream) noexcept {
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  const Stream gone = named(context, stream);
  {
    const std::lock_guard lock(mutex_);
    if (first_known_.load(std::memory_order_relaxed) && gone == first_) first_ended_.store(true);
    std::erase(all_, gone);
    for (auto& [allocation, streams] : writers_) std::erase(streams, gone);
  }
  if (!landing_.claim(Landing::now_ns() + kPatience)) return;
  if (landing_.stream() == nullptr) context_ = context;
  if (landing_.open() && context_ == context) landing_.order_after(stream);
  landing_.release();
}

std::vector<WriterStreams::Stream> WriterStreams::streams_for(const ReadBack& request) noexcept {
  const std::lock_guard lock(mutex_);
  if (request.after_everything) return all_;
  std::vector<Stream> streams;
  // While it is there: the end of a stream is waited for by every read.
  if (first_known_.load(std::memory_order_relaxed) && !first_ended_.load(std::memory_order_relaxed)) {
    streams.push_back(first_);
  }
  for (uint32_t i = 0; i < request.count; ++i) {
    const auto found = writers_.find(request.parts[i].allocation);
    if (found == writers_.end()) continue;
    for (const Stream& stream : found->second) add_once(streams, stream);
  }
  return streams;
}

bool WriterStreams::start(const ReadBack& request, CUcontext context) noexcept {
  if (landing_.stream() == nullptr) context_ = context;
  if (!landing_.open() || context_ != context) return false;
  for (const Stream& stream : streams_for(request)) {
    // An event is recorded in its own context only.
    if (stream.thread != pthread_t{} && stream.thread != pthread_self()) return false;
    if (stream.context != context || landing_.order_after(stream.stream) != CUDA_SUCCESS) return false;
  }
  uint64_t landed = 0;
  for (uint32_t i = 0; i < request.count; ++i) {
    const ReadBackPart& part = request.parts[i];
    if (driver().cuMemcpyDtoHAsync(landing_.memory() + landed, part.base + part.offset, part.bytes,
                                   landing_.stream()) != CUDA_SUCCESS) {
      return false;
    }
    landed += part.bytes;
  }
  return landing_.mark() == CUDA_SUCCESS;
}

bool WriterStreams::read_back(const ReadBack& request) noexcept {
  CUcontext context = nullptr;
  if (driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return false;
  const uint64_t deadline = Landing::now_ns() + request.patience_ns;
  if (!landing_.claim(deadline)) return false;
  const bool done = start(request, context) && landing_.wait(deadline);
  if (done && request.take != nullptr) request.take(request.user, landing_.memory());
  landing_.release();
  return done;
}

}  // namespace reprise
