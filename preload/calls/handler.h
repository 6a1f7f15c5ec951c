// The hook API: where a call goes after the hook has understood it. Two implementations: Forwarder
// (preload/start/forwarder.h: straight to the driver) and Enforcer (replay/enforcer/enforcer.h: manages memory under a
// budget). Hooks call exactly one of them. Every function returns what the program shall see. All are noexcept and
// callable from any thread.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "preload/calls/command.h"

namespace reprise {

class Handler {
 public:
  // Objects live as long as the process and are never destroyed.
  virtual CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept = 0;
  virtual CUresult release(const FreeCall& call) noexcept = 0;

  // Work on a stream. The command and what it points to are only valid during the call.
  virtual CUresult submit(const Command& command) noexcept = 0;

  virtual CUresult event_record(CUevent event, CUstream stream, unsigned flags) noexcept = 0;
  virtual CUresult event_query(CUevent event) noexcept = 0;
  virtual CUresult event_synchronize(CUevent event) noexcept = 0;
  virtual CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept = 0;
  virtual CUresult event_destroy(CUevent event) noexcept = 0;
  virtual CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept = 0;
  virtual CUresult stream_query(CUstream stream) noexcept = 0;
  virtual CUresult stream_synchronize(CUstream stream) noexcept = 0;
  virtual CUresult stream_destroy(CUstream stream) noexcept = 0;
  virtual CUresult context_synchronize() noexcept = 0;

  // Before a call that is forwarded: everything submitted so far is with the driver, and with `all_resident` everything
  // that the program owns is resident at the addresses that the program knows (`name` is for the log). An error: this
  // cannot be achieved; the call must not be forwarded, and the program gets the error instead.
  virtual CUresult before_ordered(const char* name, bool all_resident) noexcept = 0;
  // The program begins (ends) a stream capture: nothing is deferred in between.
  virtual void capture_begin() noexcept = 0;
  virtual void capture_end() noexcept = 0;

  virtual CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept = 0;
  virtual CUresult total_memory(size_t* bytes, CUdevice device) noexcept = 0;

  // Device memory that the program made around us (cuMemCreate, arrays, ...): counted for the report, and part of the
  // budget. Bytes < 0: given back.
  virtual void unmanaged(const char* what, int64_t bytes) noexcept {
    (void)what;
    (void)bytes;
  }

  // At process exit; in a fork child.
  virtual void finish() noexcept = 0;
  virtual void abandon() noexcept = 0;

 protected:
  ~Handler() = default;
};

}  // namespace reprise
