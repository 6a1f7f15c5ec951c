// A handler for tests: keeps what the hooks hand over, issues it or not, and answers what the test says. Callers: tests
// of hooks and thunks.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "preload/base/runtime.h"
#include "preload/calls/handler.h"

namespace reprise {

struct SeenCommand {
  Command command;  // without the pointers below, which were valid during the call only
  std::vector<Access> accesses;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> parameters;
  std::string name;
};

class RecordingHandler final : public OrderHandler, public MemoryHandler, public Handler {
 public:
  RecordingHandler() noexcept : Handler(this, this) {}
  CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept override;
  CUresult release(const FreeCall& call) noexcept override;
  bool makes(CUdeviceptr) const noexcept override { return made_by_us && managing(); }
  CUresult submit(const Command& command) noexcept override;
  CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept override;
  CUresult event_query(CUevent) noexcept override { return CUDA_SUCCESS; }
  CUresult event_synchronize(CUevent) noexcept override { return CUDA_SUCCESS; }
  CUresult event_elapsed(float*, CUevent, CUevent) noexcept override { return CUDA_SUCCESS; }
  CUresult event_destroy(CUevent) noexcept override { return CUDA_SUCCESS; }
  CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept override;
  CUresult stream_query(CUstream) noexcept override { return CUDA_SUCCESS; }
  CUresult stream_synchronize(CUstream stream) noexcept override;
  CUresult stream_destroy(CUstream) noexcept override { return CUDA_SUCCESS; }
  CUresult context_synchronize() noexcept override { return CUDA_SUCCESS; }
  CUresult before_ordered(const char* name, bool all_resident) noexcept override {
    ordered.emplace_back(name);
    ordered_all_resident.push_back(all_resident);
    return ordered_answer;
  }
  CUstream stand_in(CUstream stream) noexcept override {
    return stream == CU_STREAM_PER_THREAD && per_thread != nullptr ? per_thread : stream;
  }
  void before_per_thread_call() noexcept override { ++per_thread_calls; }
  bool make_more_headroom(int refusal) noexcept override {
    refusals.push_back(refusal);
    return while_making_headroom && while_making_headroom(refusal);
  }
  CUresult capture_begin() noexcept override {
    ++captures_begun;
    return ordered_answer;
  }
  CUresult before_joining_capture() noexcept override {
    ++captures_joined;
    return ordered_answer;
  }
  void capture_end() noexcept override { ++captures_ended; }
  bool reads_back() const noexcept override { return reading; }
  bool read_back(const ReadBack& request) noexcept override;
  CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept override;
  CUresult total_memory(size_t* bytes, CUdevice) noexcept override;
  CUresult before_beside(BesideCall* call) noexcept override;
  void after_beside(const BesideCall& call, CUresult result) noexcept override;
  void graph_memory(uint32_t instantiated) noexcept override { graph_allocations.push_back(instantiated); }
  void finish() noexcept override { ++finished; }
  void abandon() noexcept override { ++abandoned; }

  std::vector<AllocateCall> allocations;
  std::vector<FreeCall> frees;
  std::vector<SeenCommand> commands;
  std::vector<std::string> ordered;
  std::vector<bool> ordered_all_resident;  // one for each of these
  CUresult ordered_answer = CUDA_SUCCESS;
  bool made_by_us = true;          // answer of makes() while it manages
  std::vector<BesideCall> beside;  // as they were before the calls
  CUresult beside_answer = CUDA_SUCCESS;
  int beside_ended = 0;
  std::vector<uint32_t> graph_allocations;
  std::vector<CUstream> streams;                          // of event_record, stream_wait_event, stream_synchronize
  bool reading = false;                                   // answer of reads_back()
  bool read_answer = true;                                // of read_back()
  std::vector<ReadBack> reads;                            // without their parts
  std::vector<ReadBackPart> read_parts;                   // of all of them
  std::map<CUdeviceptr, std::vector<uint64_t>> contents;  // of allocations, by their start; else zero
  std::function<void()> while_reading;
  std::function<CUresult()> while_submitting;      // its answer, in place of `answer`
  std::vector<int> refusals;                       // of make_more_headroom()
  std::function<bool(int)> while_making_headroom;  // its answer; none: there is no more to give
  CUstream per_thread = nullptr;                   // answer of stand_in() for the per-thread stream; nullptr: itself
  int per_thread_calls = 0;
  int captures_begun = 0;
  int captures_joined = 0;
  int captures_ended = 0;
  int finished = 0;
  int abandoned = 0;
  bool issue = true;
  CUresult answer = CUDA_SUCCESS;
};

// The one of this test; fresh after each stop_watching().
RecordingHandler& handler();

// Hooks go to handler() from now on.
void watch(uint8_t flags);
void stop_watching();

}  // namespace reprise
