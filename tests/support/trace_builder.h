// Traces of small imaginary programs, built in memory. Used by the analyzer's unit and property tests.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/trace/reader.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer::testing {

inline constexpr uint64_t kChunk = 2 << 20;

struct Use {
  uint64_t allocation = 0;
  uint32_t mode = trace::kAccessRead | trace::kAccessWrite;
  uint64_t offset = 0;
  uint64_t size = 0;
};
inline Use reads(uint64_t allocation) { return {allocation, trace::kAccessRead, 0, 0}; }
inline Use writes(uint64_t allocation) { return {allocation, trace::kAccessWrite, 0, 0}; }
inline Use updates(uint64_t allocation) { return {allocation, trace::kAccessRead | trace::kAccessWrite, 0, 0}; }

class TraceBuilder {
 public:
  uint64_t allocate(uint64_t size, trace::Origin origin = trace::Origin::alloc, uint64_t address = 0) {
    trace::Allocate event{};
    event.record.header.kind = trace::RecordKind::allocate;
    event.record.header.sequence = ++sequence_;
    event.record.allocation = ++allocations_;
    event.record.size = size;
    event.record.address = address;
    event.record.origin = origin;
    info_[allocations_] = {size, origin};
    trace_.events.emplace_back(event);
    return allocations_;
  }

  void free(uint64_t allocation) {
    trace::Free event{};
    event.record.header.kind = trace::RecordKind::free;
    event.record.header.sequence = ++sequence_;
    event.record.allocation = allocation;
    event.record.origin = info_.at(allocation).origin;
    trace_.events.emplace_back(event);
  }

  void launch(const std::string& name, const std::vector<Use>& uses, uint64_t duration_ns = 100'000) {
    op(trace::OpKind::launch, name, uses, duration_ns, 0, 0);
  }

  void op(trace::OpKind kind, const std::string& name, const std::vector<Use>& uses, uint64_t duration_ns,
          uint16_t flags, uint64_t size) {
    trace::Op event{};
    event.record.header.kind = trace::RecordKind::op;
    event.record.header.sequence = ++sequence_;
    event.record.header.flags = flags;
    event.record.op = kind;
    event.record.size = size;
    event.record.stream = current_stream_;
    event.record.grid[0] = event.record.block[0] = 1;
    uint64_t name_hash = 0;
    if (kind == trace::OpKind::launch) {
      event.record.function = function(name);
      name_hash = trace::hash_bytes(name.data(), name.size());
    }
    event.record.access_count = static_cast<uint32_t>(uses.size());
    event.record.signature =
        trace::op_signature(kind, name_hash, event.record.grid, event.record.block, 0, size, event.record.access_count);
    for (uint32_t i = 0; i < uses.size(); ++i) {
      event.accesses.push_back({uses[i].allocation, uses[i].offset, uses[i].size, i * 8, uses[i].mode});
    }
    trace_.events.emplace_back(std::move(event));
    if (duration_ns > 0) {
      trace::ActivityRecord activity{};
      activity.start_ns = clock_;
      activity.end_ns = clock_ += duration_ns;
      trace_.activities[sequence_] = activity;
    }
  }

  // A few calls are not recorded.
  void pause(bool seam) {
    trace::GapRecord pause{};
    pause.header.flags = seam ? uint16_t{trace::kGapSeam} : uint16_t{0};
    pause.after_sequence = sequence_;
    pause.header.sequence = (sequence_ += 10) + 1;
    trace_.pauses.push_back(pause);
  }
  // ... in which a plan has replaced an allocation by another one at its address.
  uint64_t hand_over(uint64_t allocation, uint64_t size, uint64_t address) {
    const uint64_t resumed = sequence_ + 1;
    free(allocation);
    std::get<trace::Free>(trace_.events.back()).record.header = {trace::RecordKind::free, trace::kCaughtUp, 0, resumed};
    const uint64_t next = allocate(size, trace::Origin::alloc, address);
    std::get<trace::Allocate>(trace_.events.back()).record.header = {trace::RecordKind::allocate, trace::kCaughtUp, 0,
                                                                     resumed};
    sequence_ = resumed - 1;
    return next;
  }
  uint64_t next_sequence() const { return sequence_ + 1; }
  // A record that another thread writes once more.
  void repeat_last() { trace_.events.push_back(trace_.events.back()); }

  void synchronize() { order(trace::OrderKind::context_synchronize, 0); }

  // Ops go to this stream from now on; it waits for what the one before has to do.
  void use_stream(uint32_t stream) {
    if (stream == current_stream_) return;
    order(trace::OrderKind::event_record, current_stream_);
    order(trace::OrderKind::event_wait, stream);
    current_stream_ = stream;
  }

  void mark(const std::string& text, uint32_t depth = 0) {
    trace::Mark event{};
    event.record.header.kind = trace::RecordKind::mark;
    event.record.header.sequence = ++sequence_;
    event.record.depth = depth;
    event.text = text;
    trace_.events.emplace_back(std::move(event));
  }

  void info(const std::string& key, const std::string& value) { trace_.info[key] = value; }
  const trace::Trace& trace() const { return trace_; }

 private:
  struct Info {
    uint64_t size;
    trace::Origin origin;
  };

  void order(trace::OrderKind kind, uint32_t stream) {
    trace::Order event{};
    event.record.header.kind = trace::RecordKind::order;
    event.record.header.sequence = ++sequence_;
    event.record.order = kind;
    event.record.stream = stream;
    trace_.events.emplace_back(event);
  }

  uint32_t function(const std::string& name) {
    const auto [found, is_new] = functions_.try_emplace(name, static_cast<uint32_t>(functions_.size()) + 1);
    if (is_new) {
      trace::TracedFunction entry;
      entry.id = found->second;
      entry.name = name;
      trace_.functions.push_back(entry);
    }
    return found->second;
  }

  trace::Trace trace_;
  uint64_t sequence_ = 0;
  uint64_t allocations_ = 0;
  uint64_t clock_ = 0;
  uint32_t current_stream_ = 0;
  std::unordered_map<uint64_t, Info> info_;
  std::unordered_map<std::string, uint32_t> functions_;
};

// A chain of `layers` equal layers, forward and back: weights persistent, activations transient, `unit` bytes each.
// Working set of an op: at most three units. Returns the trace of `iterations` iterations.
inline trace::Trace train_chain(int layers, uint64_t unit, int iterations) {
  TraceBuilder program;
  std::vector<uint64_t> weights;
  weights.reserve(static_cast<size_t>(layers));
  for (int i = 0; i < layers; ++i) weights.push_back(program.allocate(unit));
  const uint64_t input = program.allocate(unit);
  for (int i = 0; i < layers; ++i) program.launch("initialise", {writes(weights[static_cast<size_t>(i)])});
  for (int step = 0; step < iterations; ++step) {
    std::vector<uint64_t> activations = {input};
    program.op(trace::OpKind::copy_host_to_device, "", {writes(input)}, 50'000, 0, unit);
    for (int i = 0; i < layers; ++i) {
      activations.push_back(program.allocate(unit));
      program.launch("forward", {reads(weights[static_cast<size_t>(i)]), reads(activations[activations.size() - 2]),
                                 writes(activations.back())});
    }
    for (int i = layers; i-- > 0;) {
      program.launch("backward", {updates(weights[static_cast<size_t>(i)]), reads(activations[static_cast<size_t>(i)]),
                                  updates(activations.back())});
      program.free(activations.back());
      activations.pop_back();
    }
    program.synchronize();
  }
  return program.trace();
}

}  // namespace reprise::analyzer::testing
