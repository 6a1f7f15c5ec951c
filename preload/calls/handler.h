// The hook API: where a call goes after the hook has understood it. Two implementations: Forwarder
// (preload/start/forwarder.h: straight to the driver) and Enforcer (replay/enforcer/enforcer.h: manages memory under a
// budget). Hooks call exactly one of them. Every function returns what the program shall see. All are noexcept and
// callable from any thread.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "preload/calls/command.h"
#include "preload/calls/read_back.h"
#include "preload/driver/beside.h"
#include "preload/driver/taken.h"

namespace reprise {

// Handler::submit()'s answer to a blind command that is no call of a plan in force (any more): nothing was done. Its
// operands are to be looked into, and it comes again. No error of the driver's has the number.
inline constexpr CUresult kLookFirst = static_cast<CUresult>(1023);

class Handler {
 public:
  // Objects live as long as the process and are never destroyed.
  virtual CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept = 0;
  virtual CUresult release(const FreeCall& call) noexcept = 0;

  // Is it an address of memory that the handler makes itself, in the driver's place?
  virtual bool makes(CUdeviceptr address) const noexcept {
    (void)address;
    return false;
  }

  // Work on a stream. The command and what it points to are only valid during the call. May answer kLookFirst.
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

  // The stream that the program's work on `stream` goes to. A driver's per-thread default stream is that of the thread
  // which calls the driver, so a handler that defers work has one of its own for each thread.
  virtual CUstream stand_in(CUstream stream) noexcept { return stream; }
  // Before a forwarded call that works on the driver's own per-thread default stream, because it names none.
  virtual void before_per_thread_call() noexcept {}

  // Before a call that is forwarded: everything submitted so far is with the driver, and with `all_resident` everything
  // that the program owns is resident at the addresses that the program knows (`name` is for the log). An error: this
  // cannot be achieved; the call must not be forwarded, and the program gets the error instead.
  virtual CUresult before_ordered(const char* name, bool all_resident) noexcept = 0;
  // Before the program's stream begins to capture, before another one may join a capture; after a capture has ended, or
  // could not begin. Nothing that was submitted is deferred past any of these, nor is anything submitted in between. An
  // error: the call must not be forwarded.
  virtual CUresult capture_begin() noexcept = 0;
  virtual CUresult before_joining_capture() noexcept = 0;
  virtual void capture_end() noexcept = 0;

  // Before the program ends a context: nothing of ours is left in it, and its allocations are gone: `freed` is called
  // for each that the handler has made.
  virtual CUresult context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept {
    (void)context;
    (void)freed;
    return CUDA_SUCCESS;
  }
  // Is the program recorded, or served on demand, so that buffers are worth reading back? A plan in force says what its
  // calls touch. Asked for each launch that has such a buffer.
  virtual bool reads_back() const noexcept { return false; }
  // false: the bytes could not be had, or not in time. Not while a capture is open.
  virtual bool read_back(const ReadBack&) noexcept { return false; }

  // The program has allowed work on `peer` to reach memory of `device`. An error: it cannot reach what the handler
  // makes.
  virtual CUresult peer_allowed(CUdevice device, CUdevice peer) noexcept {
    (void)device;
    (void)peer;
    return CUDA_SUCCESS;
  }

  // What the program is told of the device instead of the driver's figures, in bytes. false: those stand.
  virtual bool told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
    (void)device;
    (void)free_bytes;
    (void)total_bytes;
    return false;
  }
  virtual CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept = 0;
  virtual CUresult total_memory(size_t* bytes, CUdevice device) noexcept = 0;

  // The driver has refused the program device memory that is not ours to make. true: so much of ours has been given
  // back, and it may be asked again.
  virtual bool make_headroom(uint64_t bytes) noexcept {
    (void)bytes;
    return false;
  }

  // The same for what takes memory that nobody can tell the size of: code, limits, graphs. `refusal` counts those of
  // this call, from 0 on: more is given back each time. false: there is no more to give.
  virtual bool make_more_headroom(int refusal) noexcept {
    (void)refusal;
    return false;
  }

  // Around a call by which the program makes device memory that is not ours to make, or gives some back (cuMemCreate,
  // arrays, ...): it counts towards the budget, and ours makes room for it first. An error: the budget cannot hold it;
  // the call must not be made, and the program gets the error. after_beside() comes behind each other answer.
  virtual CUresult before_beside(BesideCall* call) noexcept {
    (void)call;
    return CUDA_SUCCESS;
  }
  virtual void after_beside(const BesideCall& call, CUresult result) noexcept {
    (void)call;
    (void)result;
  }

  // Graphs that allocate: the driver may hold more or less for them now. `instantiated`: so many nodes that do are in a
  // graph that can be launched from now on; 0: some were destroyed.
  virtual void graph_memory(uint32_t instantiated) noexcept { (void)instantiated; }

  // Around a call of this thread by which the driver may take device memory for itself (a module is loaded, a graph
  // instantiated): counts as the program's. `before`: what before_taking() answered.
  struct BeforeTaking {
    BeforeCall look = {};  // nothing is free: nothing is to be counted
    uint64_t submitted = 0;
  };
  virtual BeforeTaking before_taking() noexcept { return {}; }
  virtual void after_taking(const BeforeTaking& before) noexcept { (void)before; }

  // At process exit; in a fork child.
  virtual void finish() noexcept = 0;
  virtual void abandon() noexcept = 0;

 protected:
  ~Handler() = default;
};

}  // namespace reprise
