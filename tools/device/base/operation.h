// A piece of device work: what a stream runs, what capture puts into a graph, what a graph launch runs again.
// Immutable. Callers: the API functions make them, stream threads and graph launches execute them.
#pragma once
#include <cstdint>
#include <memory>

namespace reprise::sim {

class Context;
class Stream;

struct Execution {
  Stream& stream;
  Context& context;
  uint32_t stream_id;
  uint64_t activity;  // id for activity records
  uint64_t call;      // position in the program's order of calls (current_call())
  uint64_t& time_ns;  // where the stream has got to by the modelled clock (device/clock.h); operations move it on
};

enum class OperationKind : uint8_t { kernel, copy, memset, host, empty, record, wait, allocate, free, other };

class Operation {
 public:
  virtual ~Operation() = default;
  virtual OperationKind kind() const = 0;
  // Runs on a thread of the driver, in stream order. Reports a failure with Context::fail().
  virtual void execute(const Execution& execution) const = 0;
  // After a sticky error only book-keeping goes on.
  virtual bool runs_after_failure() const { return false; }
};

using OperationPointer = std::shared_ptr<const Operation>;

}  // namespace reprise::sim
