// When did an op run on the device? One interface, three sources: CUPTI, event pairs, the simulated device.
// Callers: the recorder and the replay collect; the forwarder and the replay bracket each command that they issue with
// push()/pop() on the issuing thread.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace reprise {

// Device times in nanoseconds on one clock per process. `id` is what push() was given.
using ActivityCallback = void (*)(void* user, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept;

class ActivitySource {
 public:
  // Begins to collect; false when this source cannot work here (then the next one is tried).
  virtual bool start() noexcept = 0;
  virtual void stop() noexcept = 0;
  virtual bool running() const noexcept = 0;

  // Brackets the driver calls of one op on this thread.
  virtual void push(uint64_t id, CUstream stream) noexcept = 0;
  virtual void pop(uint64_t id, CUstream stream) noexcept = 0;

  // Hands over what has completed. Call after a synchronisation to get everything. One thread at a time.
  virtual void collect(ActivityCallback callback, void* user) noexcept = 0;

  virtual const char* name() const noexcept = 0;

 protected:
  ~ActivitySource() = default;
};

// The best source that starts here: simulated when the driver is ours, else CUPTI, else event pairs. nullptr when
// `wanted` ("auto", "cupti", "events", "sim", "none") forbids or none starts. The object lives as long as the process.
ActivitySource* choose_activity_source(const char* wanted) noexcept;

}  // namespace reprise
