// From the calls of one iteration to tensors and calls of the TaskGraph; edges.cpp derives the rest.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/iteration/isomorphism.h"
#include "analyzer/taskgraph/graph.h"
#include "analyzer/taskgraph/kernel_facts.h"
#include "preload/footprint/slab.h"
#include "preload/trace/median.h"
#include "preload/trace/names.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer {
namespace {

bool is_host_copy(trace::OpKind kind) {
  return kind == trace::OpKind::copy_host_to_device || kind == trace::OpKind::copy_device_to_host ||
         kind == trace::OpKind::copy_host_to_host;
}

class TaskGraphBuilder {
 public:
  TaskGraphBuilder(const CallStream& stream, const Iteration& iteration, uint64_t chunk_bytes, const Machine& machine,
                   plan::Safety safety, const KnownKernels& known)
      : stream_(stream),
        first_(iteration.first_call),
        end_(first_ + iteration.call_count),
        parts_move_(iteration.parts_move),
        machine_(machine),
        safety_(safety),
        known_(known) {
    graph_.chunk_bytes = chunk_bytes;
  }

  Result<TaskGraph> build() {
    set_program();
    add_tensors();
    graph_.small_chunks = count_small_chunks();
    for (CallIndex call{first_}; call < end_; ++call) add_call(call);
    set_waits();
    graph_.foreign_count = static_cast<uint32_t>(foreign_.size()) + 1;
    if (several_devices_) {
      return Status{StatusCode::unsupported, "the iteration uses more than one device; plans are for one"};
    }
    std::optional<KernelKnowledge> knowledge;
    if (known_.facts) knowledge.emplace(*stream_.trace, *known_.facts, known_.code);
    if (plan::is_by_kernel(safety_)) mark(knowledge);
    graph_.transfers_map = safety_ == plan::Safety::strict || (plan::is_by_kernel(safety_) && !any_complete_);
    const bool order_by_proof = safety_ != plan::Safety::strict && !graph_.strays;
    if (knowledge) apply_facts(*knowledge, ops_, order_by_proof, graph_);
    complete_task_graph(graph_);
    return std::move(graph_);
  }

 private:
  static constexpr uint32_t kUnknownHostMemory = 0;
  static constexpr size_t kDurations = 5;
  static constexpr uint32_t kIterationsCompared = 16;
  using Durations = std::unordered_map<uint64_t, std::vector<uint64_t>>;  // by signature

  // One op that may touch more than its operands may write whatever is on the device: then reads count as writes.
  void mark(std::optional<KernelKnowledge>& knowledge) {
    if (knowledge) mark_complete(*knowledge, ops_, safety_, graph_);
    any_complete_ = std::any_of(graph_.calls.begin(), graph_.calls.end(),
                                [](const GraphCall& entry) { return entry.call.audited != 0; });
    graph_.strays = std::any_of(graph_.calls.begin(), graph_.calls.end(),
                                [](const GraphCall& entry) { return plan::may_stray(entry.call); });
    if (!graph_.strays) return;
    for (GraphCall& entry : graph_.calls) {
      for (plan::OpAccess& access : entry.call.accesses) {
        if ((access.mode & trace::kAccessRead) != 0) access.mode |= trace::kAccessWrite;
      }
    }
  }

  void set_program() {
    const auto& info = stream_.trace->info;
    if (const auto found = info.find("program"); found != info.end()) graph_.program = found->second;
    if (const auto found = info.find("program.hash"); found != info.end()) {
      graph_.program_hash = std::strtoull(found->second.c_str(), nullptr, 16);
    }
  }

  void add_tensors() {
    for (uint32_t span = 0; span < stream_.spans.size(); ++span) {
      const AllocationSpan& from = stream_.spans[span];
      if (from.allocated >= end_) break;
      if (from.freed != kNone && from.freed < first_) continue;
      if (is_handed_over(from)) continue;
      plan::Tensor tensor;
      tensor.size = from.size;
      tensor.recorded_allocation = from.id;
      tensor.chunk_count = chunks_of(from.size, graph_.chunk_bytes);
      if (from.allocated >= first_) {
        tensor.allocate_call = from.allocated - first_;
        tensor.free_call = from.freed - first_;
      }
      record_device(from.device);
      tensor_of_[from.id] = static_cast<uint32_t>(graph_.tensors.size());
      graph_.tensors.push_back(tensor);
    }
  }

  // At the iteration's two ends only persistent tensors are alive; those that take turns may lie elsewhere every other
  // time. Where the replay has placed them while they were recorded, their addresses say in which blocks they are.
  uint64_t count_small_chunks() const {
    if (stream_.trace->info.count("memory.managed") == 0) return simulate_small_chunks();
    return std::max(blocks_at(first_), blocks_at(end_));
  }

  uint64_t blocks_at(CallIndex call) const {
    std::set<uint64_t> blocks;
    for (const AllocationSpan& span : stream_.spans) {
      const bool alive = span.allocated < call && (span.freed == kNone || span.freed >= call);
      if (alive && footprint::is_small(span.size, graph_.chunk_bytes)) blocks.insert(span.address / graph_.chunk_bytes);
    }
    return blocks.size();
  }

  // All small tensors before the iteration's end get their places as the replay gives them.
  uint64_t simulate_small_chunks() const {
    constexpr uint64_t kBase = uint64_t{1} << 46;
    footprint::Slab slab;
    slab.reset(kBase, kBase, graph_.chunk_bytes);
    std::vector<uint64_t> places(stream_.spans.size(), 0);
    uint64_t at_start = 0;
    for (CallIndex call{0}; call < end_; ++call) {
      if (call == first_) at_start = slab.blocks();
      const uint32_t index = stream_.allocations[call];
      if (index == kNone || !footprint::is_small(stream_.spans[index].size, graph_.chunk_bytes)) continue;
      const AllocationSpan& span = stream_.spans[index];
      if (span.allocated == call) {
        places[index] = slab.allocate(span.size);
      } else if (places[index] != 0) {
        slab.release(places[index], span.size);
      }
    }
    return std::max(at_start, slab.blocks());
  }

  // Does this allocation, at the iteration's end, stand for a tensor that was there at its start? Then that tensor is
  // handed over, and both are one.
  bool is_handed_over(const AllocationSpan& span) {
    if (span.allocated < first_ || (span.freed != kNone && span.freed < end_)) return false;
    const uint32_t before = handed_over_from(stream_, span, end_ - first_);
    const auto found = before == kNone ? tensor_of_.end() : tensor_of_.find(stream_.spans[before].id);
    if (found == tensor_of_.end()) return false;
    const uint32_t tensor = found->second;
    tensor_of_[span.id] = tensor;
    return true;
  }

  plan::CallKind kind_of(const AllocationSpan& span, bool allocates) const {
    const bool transient = graph_.tensors[tensor_of_.at(span.id)].allocate_call != kNone;
    if (allocates) return transient ? plan::CallKind::allocate : plan::CallKind::allocate_handover;
    return transient ? plan::CallKind::free : plan::CallKind::free_handover;
  }

  // Takes the device of a tensor. Work on another device that touches no tensor is not planned.
  void record_device(uint16_t device) {
    if (!device_) device_ = device;
    several_devices_ = several_devices_ || device != *device_;
  }

  void add_call(CallIndex index) {
    GraphCall entry;
    const trace::Op* const op = stream_.op(index);
    ops_.push_back(op);
    if (op != nullptr) {
      fill_op(index, *op, entry);
    } else {
      const AllocationSpan& span = stream_.spans[stream_.allocations[index]];
      const bool allocates = span.allocated == index;
      entry.call.kind = kind_of(span, allocates);
      entry.call.origin = span.origin;
      entry.call.tensor = tensor_of_.at(span.id);
      entry.call.signature =
          allocates ? trace::allocate_signature(span.origin, span.size) : trace::free_signature(span.origin, span.size);
      entry.call.stream = stream_of(stream_.event(index));
    }
    graph_.iteration_hash = trace::hash_mix(graph_.iteration_hash, entry.call.signature);
    graph_.calls.push_back(std::move(entry));
  }

  static uint32_t stream_of(const trace::Event& event) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) return allocate->record.stream;
    if (const auto* free = std::get_if<trace::Free>(&event)) return free->record.stream;
    return 0;
  }

  void fill_op(CallIndex index, const trace::Op& op, GraphCall& entry) {
    plan::Call& call = entry.call;
    call.kind = plan::CallKind::op;
    call.op = op.record.op;
    call.flags = op.record.header.flags;
    call.stream = op.record.stream;
    call.signature = op.record.signature;
    call.name = name_of_op(op);
    bool host_known = false;
    for (size_t i = 0; i < op.accesses.size(); ++i) {
      const trace::AccessRecord& access = op.accesses[i];
      const auto span = stream_.span_of.find(access.allocation);
      const auto found =
          span == stream_.span_of.end() ? tensor_of_.end() : tensor_of_.find(stream_.spans[span->second].id);
      if (found == tensor_of_.end()) {
        entry.foreign.push_back({foreign_resource(access.allocation), (access.mode & trace::kAccessWrite) != 0});
        host_known = true;
      } else {
        call.accesses.push_back(clipped(access, found->second));
        if (plan::moves(call.accesses.back()) || part_moves(index, i)) let_move(call.accesses.back());
      }
    }
    // Host memory that no record names is one resource: copies out of the device write it.
    if (is_host_copy(call.op) && !host_known) {
      entry.foreign.push_back({kUnknownHostMemory, call.op != trace::OpKind::copy_host_to_device});
    }
    set_duration(index, op, entry);
  }

  plan::OpAccess clipped(const trace::AccessRecord& access, uint32_t tensor) const {
    const uint64_t size = graph_.tensors[tensor].size;
    plan::OpAccess result;
    result.tensor = tensor;
    result.mode = access.mode;
    // While the tensor is on the device for this op, others may write it unseen: then its host copy is out of date.
    const bool reads = (access.mode & trace::kAccessRead) != 0;
    if (safety_ == plan::Safety::strict && reads) result.mode |= trace::kAccessWrite;
    result.offset = std::min(access.offset, size);
    result.size = access.size <= size - result.offset ? access.size : 0;
    result.parameter_offset = access.parameter_offset;
    return result;
  }

  // Was the access to another part of the tensor in an iteration before?
  bool part_moves(CallIndex index, size_t access) const {
    if (!parts_move_) return false;
    const trace::Op& now = *stream_.op(index);
    const uint32_t length = end_ - first_;
    for (CallIndex at = index; at >= length && index - at < kIterationsCompared * length;) {
      at -= length;
      const trace::Op* const before = stream_.op(at);
      if (before == nullptr || before->record.signature != now.record.signature) break;
      if (before->accesses.size() != now.accesses.size()) break;
      const trace::AccessRecord& a = before->accesses[access];
      const trace::AccessRecord& b = now.accesses[access];
      if (a.offset != b.offset || a.size != b.size) return true;
    }
    return false;
  }

  // It may be to any part, and what it writes leaves the rest as it is.
  static void let_move(plan::OpAccess& access) {
    access.offset = access.size = 0;
    access.mode |= plan::kAccessMoves;
    if (plan::writes(access)) access.mode |= trace::kAccessRead;
  }

  std::string name_of_op(const trace::Op& op) const {
    const uint32_t function = op.record.function;
    if (function >= 1 && function <= stream_.trace->functions.size()) {
      return stream_.trace->functions[function - 1].name;
    }
    return std::string(trace::name_of(op.record.op));
  }

  uint32_t foreign_resource(uint64_t allocation) {
    return foreign_.try_emplace(allocation, static_cast<uint32_t>(foreign_.size()) + 1).first->second;
  }

  // The median over this iteration and those before it: a single one may have been disturbed.
  void set_duration(CallIndex index, const trace::Op& op, GraphCall& entry) {
    std::vector<uint64_t> seen;
    for (CallIndex at = index; seen.size() < kDurations; at -= end_ - first_) {
      const trace::Op* before = stream_.op(at);
      if (before == nullptr || before->record.signature != op.record.signature) break;
      if (const uint64_t ns = stream_.recorded_ns(*before); ns != 0) seen.push_back(ns);
      if (at < end_ - first_) break;
    }
    if (!seen.empty()) {
      entry.call.duration_ns = trace::median(std::move(seen));
      return;
    }
    entry.estimated = true;
    entry.call.duration_ns = elsewhere(op.record.signature).value_or(estimate(entry.call, op.record.size));
  }

  // Of ops with this signature at other places, the median of the last ones. A program that runs ahead of the device is
  // planned for when only the first ops of an iteration have times; most of the others are like one of those.
  std::optional<uint64_t> elsewhere(uint64_t signature) {
    if (!durations_) durations_ = last_durations();
    const auto found = durations_->find(signature);
    if (found == durations_->end()) return std::nullopt;
    return trace::median(found->second);
  }

  Durations last_durations() const {
    Durations result;
    for (CallIndex call{stream_.size()}; call-- > 0;) {
      const trace::Op* const op = stream_.op(call);
      const uint64_t ns = op != nullptr ? stream_.recorded_ns(*op) : 0;
      if (ns == 0) continue;
      std::vector<uint64_t>& seen = result[op->record.signature];
      if (seen.size() < kDurations) seen.push_back(ns);
    }
    return result;
  }

  uint64_t estimate(const plan::Call& call, uint64_t size) const {
    if (call.op == trace::OpKind::copy_host_to_device) {
      return copy_ns(size, machine_.h2d_bytes_per_s, machine_.latency_ns);
    }
    if (call.op == trace::OpKind::copy_device_to_host) {
      return copy_ns(size, machine_.d2h_bytes_per_s, machine_.latency_ns);
    }
    uint64_t bytes = 0;
    for (const plan::OpAccess& access : call.accesses) {
      bytes += access.size != 0 ? access.size : graph_.tensors[access.tensor].size - access.offset;
    }
    return copy_ns(bytes, machine_.memory_bytes_per_s, machine_.launch_ns);
  }

  // How far the program had waited for the device when it made each call.
  void set_waits() {
    uint32_t waited = 0;
    for (CallIndex call{first_}; call <= end_; ++call) {
      if (call > first_ && stream_.after_wait[call] != 0) waited = call - first_;
      if (call < end_) graph_.calls[call - first_].waited = waited;
    }
    graph_.waited_at_end = waited;
  }

  const CallStream& stream_;
  const CallIndex first_;
  const CallIndex end_;
  bool parts_move_;
  Machine machine_;
  plan::Safety safety_;
  bool any_complete_ = false;
  const KnownKernels known_;
  TaskGraph graph_;
  std::vector<const trace::Op*> ops_;  // by call
  std::unordered_map<uint64_t, uint32_t> tensor_of_;
  std::unordered_map<uint64_t, uint32_t> foreign_;
  std::optional<Durations> durations_;  // once it is needed
  std::optional<uint16_t> device_;      // none: no tensor yet
  bool several_devices_ = false;
};

// Libraries choose kernels by size, and other sizes may come than were recorded.
void allow_any_size(TaskGraph& graph) {
  for (GraphCall& entry : graph.calls) {
    plan::Call& call = entry.call;
    call.flags |= plan::kCallAnySize;
    const bool reads_and_writes =
        std::all_of(call.accesses.begin(), call.accesses.end(),
                    [](const plan::OpAccess& access) { return plan::reads(access) && plan::writes(access); });
    if (call.op == trace::OpKind::launch && !entry.known && reads_and_writes) call.flags |= plan::kCallAnyKernel;
  }
}

}  // namespace

Result<TaskGraph> build_task_graph(const CallStream& stream, const Iteration& iteration, uint64_t chunk_bytes,
                                   const Machine& machine, plan::Safety safety, const KnownKernels& known) {
  // What an audit has seen, it has seen of one shape; and other sizes may take other kernels.
  const bool none = iteration.sizes_vary && plan::is_by_kernel(safety);
  Result<TaskGraph> graph =
      TaskGraphBuilder(stream, iteration, chunk_bytes, machine, safety, none ? KnownKernels{} : known).build();
  if (graph.ok() && iteration.sizes_vary) allow_any_size(graph.value());
  return graph;
}

}  // namespace reprise::analyzer
