// The loop of a recording, in the calls as they were recorded or as it takes to see it: with frees in another order,
// with sizes made even. Caller: Planning.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "analyzer/iteration/call_stream.h"
#include "analyzer/iteration/finder.h"

namespace reprise::analyzer {

// By allocation of the recording: the tensor of an iteration whose sizes vary that this one was has to have this size
// at least. Not empty: such an iteration is looked for.
using LeastSizes = std::unordered_map<uint64_t, uint64_t>;

// What is looked for.
struct WantedLoop {
  uint64_t from_call = 0;    // only in what was called from this sequence number on
  uint64_t least_calls = 0;  // as find_iteration() says
  LeastSizes sizes = {};
};

using FindIteration = std::function<Result<Iteration>(const CallStream&)>;

struct FoundLoop {
  Result<Iteration> iteration;
  std::optional<CallStream> calls = {};         // that it is found in, if not those that were recorded
  std::shared_ptr<const trace::Trace> of = {};  // what these are of, if not the recording

  double coverage() const { return iteration.ok() ? iteration.value().coverage : 0; }
  // Is it most of the recording? Then nothing else is looked for.
  bool is_most() const { return coverage() >= 0.5; }
};

// Looks in the calls as recorded. If the loop is less than half of the recording, looks with frees in another order
// (floating_frees.h). If sizes made even (varying_sizes.h) give a loop that is clearly more, returns that one.
FoundLoop find_loop_in(const CallStream& recorded, const FindIteration& find, const LeastSizes& sizes = {});

}  // namespace reprise::analyzer
