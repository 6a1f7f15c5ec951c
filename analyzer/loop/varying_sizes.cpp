#include "analyzer/loop/varying_sizes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/iteration/words.h"
#include "analyzer/loop/floating_frees.h"
#include "analyzer/plan/plan.h"

namespace reprise::analyzer {
namespace {

using trace::Trace;

uint64_t structure_of(const trace::Op& op) {
  const auto named = std::count_if(op.accesses.begin(), op.accesses.end(), [&](const trace::AccessRecord& access) {
    return op.record.op != trace::OpKind::launch || access.parameter_offset != trace::kNoParameter;
  });
  return trace::op_structure(op.record.op, op.record.signature, static_cast<uint32_t>(named));
}

// As of any kernel: its parameters are only told apart, and it may read and write.
void forget_kernel(trace::Op& op) {
  op.record.function = 0;
  std::fill(std::begin(op.record.grid), std::end(op.record.grid), 0u);
  std::fill(std::begin(op.record.block), std::end(op.record.block), 0u);
  op.parameters.clear();
  uint32_t place = 0;
  for (trace::AccessRecord& access : op.accesses) {
    if (access.parameter_offset != trace::kNoParameter) access.parameter_offset = place++;
    access.mode |= trace::kAccessRead | trace::kAccessWrite;
  }
}

// Nothing of the recording is left but which call is of what kind, and which tensors it touches.
std::shared_ptr<Trace> structure_of(const Trace& recorded) {
  auto bare = std::make_shared<Trace>(recorded);
  for (trace::Event& event : bare->events) {
    if (auto* const allocate = std::get_if<trace::Allocate>(&event)) allocate->record.size = 1;
    auto* const op = std::get_if<trace::Op>(&event);
    if (op == nullptr) continue;
    op->record.signature = structure_of(*op);
    if (op->record.op == trace::OpKind::launch) forget_kernel(*op);
    for (trace::AccessRecord& access : op->accesses) access.offset = access.size = 0;
  }
  return bare;
}

// Where the iteration occurs, by its calls' kinds: the events of each occurrence, in order.
std::vector<std::vector<uint32_t>> occurrences_of(const CallStream& bare, const Iteration& found) {
  const CallWords call_words(bare);
  const std::vector<uint64_t>& words = call_words.without_tensors();
  const auto iteration = words.begin() + found.first_call;
  const auto complete = [&](uint32_t begin, uint32_t end) {
    const auto missing = std::lower_bound(bare.incomplete.begin(), bare.incomplete.end(), begin);
    return (missing == bare.incomplete.end() || *missing >= end) && contiguous(bare, begin, end);
  };
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t at = found.first_call % found.call_count; at + found.call_count <= bare.size();) {
    const uint32_t end = at + found.call_count;
    if (complete(at, end) && std::equal(iteration, iteration + found.call_count, words.begin() + at)) {
      all.emplace_back(bare.events.begin() + at, bare.events.begin() + end);
      at = end;
    } else {
      ++at;
    }
  }
  return all;
}

// Makes what stands at one place of the iteration even in all occurrences.
class Evener {
 public:
  Evener(const Trace& recorded, const LeastSizes& sizes) : trace_(std::make_shared<Trace>(recorded)), sizes_(sizes) {
    for (const trace::Event& event : recorded.events) {
      const auto* const allocate = std::get_if<trace::Allocate>(&event);
      if (allocate != nullptr) recorded_size_[allocate->record.allocation] = allocate->record.size;
    }
  }

  void even(const std::vector<uint32_t>& events) {
    if (std::holds_alternative<trace::Allocate>(trace_->events[events.front()])) even_allocations(events);
    if (std::holds_alternative<trace::Op>(trace_->events[events.front()])) even_ops(events);
  }

  bool differed() const { return differed_; }
  // Are most launches of one kernel each? Libraries choose some by size; where most differ, it is another program's
  // work.
  bool is_alike() const { return 2 * of_one_kernel_ >= launches_; }
  std::shared_ptr<const Trace> take() { return std::move(trace_); }

 private:
  trace::Op& op(uint32_t event) { return std::get<trace::Op>(trace_->events[event]); }

  void even_allocations(const std::vector<uint32_t>& events) {
    const auto record = [&](uint32_t event) -> trace::AllocateRecord& {
      return std::get<trace::Allocate>(trace_->events[event]).record;
    };
    const uint64_t first = record(events.front()).size;
    uint64_t largest = first;
    for (const uint32_t event : events) {
      const auto least = sizes_.find(record(event).allocation);
      largest = std::max({largest, record(event).size, least == sizes_.end() ? 0 : least->second});
      differed_ = differed_ || record(event).size != first || largest != first;
    }
    for (const uint32_t event : events) record(event).size = largest;
  }

  void even_ops(const std::vector<uint32_t>& events) {
    const trace::Op first = op(events.front());
    bool same_kernel = true;
    for (const uint32_t event : events) {
      same_kernel = same_kernel && op(event).record.function == first.record.function;
      differed_ = differed_ || op(event).record.signature != first.record.signature;
    }
    launches_ += first.record.op == trace::OpKind::launch ? 1u : 0u;
    of_one_kernel_ += first.record.op == trace::OpKind::launch && same_kernel ? 1u : 0u;
    for (size_t access = 0; access < first.accesses.size(); ++access) even_accesses(events, access);
    for (const uint32_t event : events) {
      op(event).record.signature = structure_of(op(event));
      if (!same_kernel) forget_kernel(op(event));
    }
    even_sizes_and_times(events);
  }

  void even_accesses(const std::vector<uint32_t>& events, size_t which) {
    const trace::AccessRecord first = op(events.front()).accesses[which];
    bool same_offset = true;
    bool to_the_end = true;
    uint32_t mode = 0;
    for (const uint32_t event : events) {
      const trace::AccessRecord& access = op(event).accesses[which];
      const auto size = recorded_size_.find(access.allocation);
      same_offset = same_offset && access.offset == first.offset;
      to_the_end = to_the_end &&
                   (access.size == 0 || size == recorded_size_.end() || access.offset + access.size == size->second);
      mode |= access.mode;
    }
    for (const uint32_t event : events) {
      trace::AccessRecord& access = op(event).accesses[which];
      access.mode = mode;
      if (recorded_size_.count(access.allocation) == 0) continue;
      access.size = 0;
      if (same_offset && to_the_end) continue;
      access.offset = 0;
      access.mode |= plan::kAccessMoves;
    }
  }

  void even_sizes_and_times(const std::vector<uint32_t>& events) {
    uint64_t bytes = 0;
    uint64_t longest = 0;
    const auto activity = [&](uint32_t event) { return trace_->activities.find(op(event).record.header.sequence); };
    for (const uint32_t event : events) {
      bytes = std::max(bytes, op(event).record.size);
      const auto found = activity(event);
      if (found == trace_->activities.end() || found->second.end_ns <= found->second.start_ns) continue;
      longest = std::max(longest, found->second.end_ns - found->second.start_ns);
    }
    for (const uint32_t event : events) {
      op(event).record.size = bytes;
      const auto found = activity(event);
      if (found != trace_->activities.end()) found->second.end_ns = found->second.start_ns + longest;
    }
  }

  std::shared_ptr<Trace> trace_;
  const LeastSizes& sizes_;
  std::unordered_map<uint64_t, uint64_t> recorded_size_;  // by allocation
  bool differed_ = false;
  uint32_t launches_ = 0;  // places of the iteration
  uint32_t of_one_kernel_ = 0;
};

// Those that are equal but for sizes: what a call touches through addresses in memory is not told by its kind.
void erase_others(const Trace& trace, std::vector<std::vector<uint32_t>>& occurrences) {
  const auto touches_as_many = [&](uint32_t a, uint32_t b) {
    const auto* const x = std::get_if<trace::Op>(&trace.events[a]);
    const auto* const y = std::get_if<trace::Op>(&trace.events[b]);
    return x == nullptr || (y != nullptr && x->accesses.size() == y->accesses.size());
  };
  const std::vector<uint32_t> last = occurrences.back();
  std::erase_if(occurrences, [&](const std::vector<uint32_t>& events) {
    return !std::equal(events.begin(), events.end(), last.begin(), touches_as_many);
  });
}

}  // namespace

std::optional<FoundLoop> with_even_sizes(const CallStream& recorded, const FindIteration& find,
                                         const LeastSizes& sizes) {
  const std::shared_ptr<const Trace> bare = structure_of(*recorded.trace);
  const CallStream bare_calls = make_call_stream(*bare);
  const FoundLoop structure = in_any_order(bare_calls, [](const CallStream& calls) { return find_iteration(calls); });
  if (!structure.is_most()) return std::nullopt;
  const CallStream& found_in = structure.calls ? *structure.calls : bare_calls;
  std::vector<std::vector<uint32_t>> occurrences = occurrences_of(found_in, structure.iteration.value());
  if (occurrences.empty()) return std::nullopt;
  erase_others(*recorded.trace, occurrences);
  Evener evener(*recorded.trace, sizes);
  std::vector<uint32_t> events;
  for (uint32_t place = 0; place < structure.iteration.value().call_count; ++place) {
    events.clear();
    for (const std::vector<uint32_t>& occurrence : occurrences) events.push_back(occurrence[place]);
    evener.even(events);
  }
  if (!evener.differed() || !evener.is_alike()) return std::nullopt;
  const std::shared_ptr<const Trace> evened = evener.take();
  CallStream calls = make_call_stream(*evened);
  FoundLoop loop = in_any_order(calls, find);
  if (!loop.iteration.ok()) return loop;
  loop.iteration.value().sizes_vary = true;
  if (!loop.calls) loop.calls = std::move(calls);
  loop.of = evened;
  return loop;
}

}  // namespace reprise::analyzer
