// What a hooked call becomes: one Command for work on a stream, one small struct for each other kind of call. Hooks
// build them on the stack, the recorder writes them, a Handler forwards or defers them. Plain data; nothing here
// allocates.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/trace/format.h"

namespace reprise {

// One pointer that a call carries, resolved to a live allocation: what a trace keeps of it, and the address itself, as
// the program passed it. Kernels read and write until proven otherwise.
struct Access : trace::AccessRecord {
  CUdeviceptr address;
};

// Performs the driver call from `payload` on `stream`. Runs on any thread, with the command's context current. While
// memory is managed, the payload is position independent: it may be a byte copy of the one the hook built.
using IssueFunction = CUresult (*)(const void* payload, CUstream stream) noexcept;

// The parts of a Command. None has a defaulted constructor: it sets member by member, by moves. What is zeroed as a
// whole takes a `rep stos`, which each launch would wait for.

// Where the work goes.
struct CommandPlace {
  constexpr CommandPlace() noexcept {}
  CUcontext context{};
  CUdevice device{};     // of the context
  uint32_t stream_id{};  // trace id of the stream
  CUstream stream{};     // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created handle, never 0
};

// What of the device's memory it touches.
struct CommandOperands {
  constexpr CommandOperands() noexcept {}
  const Access* accesses{};
  uint32_t access_count{};
  bool blind{};  // buffers that may hold addresses were not looked into, because a plan is in force (looks.h)
  uint64_t operand_bytes{};  // sizes of the allocations that the accesses are to, one for each access
};

// Host memory that the driver reads or writes, for copies.
struct CommandHostSide {
  constexpr CommandHostSide() noexcept {}
  const void* host_source{};  // nullptr: none
  void* host_destination{};   // the same
  bool host_pageable{};       // neither pinned by the program nor device-visible
  // Where in the payload the host_source pointer stands, so that a handler that stages the bytes can redirect it;
  // 0 when it cannot be redirected.
  uint32_t host_source_offset{};
};

// How it gets to the driver.
struct CommandIssue {
  constexpr CommandIssue() noexcept {}
  IssueFunction issue{};
  const void* payload{};     // alignment 16
  uint32_t payload_bytes{};  // at most kMaxPayloadBytes
};

// Zero for what launches no kernel.
struct CommandLaunch {
  constexpr CommandLaunch() noexcept {}
  uint32_t function{};  // trace id of the kernel
  // No launch of this function and shape has been issued yet, or the driver may refuse what it names: errors must
  // surface now.
  bool first_of_shape{};
  // Identity of the kernel in all programs, where it reaches only what its parameters name and may be launched again;
  // 0 otherwise.
  uint64_t kernel{};
  uint64_t code{};  // its identity, whatever it reaches; 0: not known
  // The kernel's parameter bytes (inside payload) for the trace; each parameter at its offset.
  const uint8_t* parameters{};
  uint32_t parameter_bytes{};
  uint32_t grid[3]{};
  uint32_t block[3]{};
  uint32_t shared_bytes{};
};

struct Command : CommandPlace, CommandOperands, CommandHostSide, CommandIssue, CommandLaunch {
  constexpr Command() noexcept {}

  trace::OpKind op{};
  uint16_t flags{};      // trace::OpFlags
  uint32_t call_site{};  // trace id, 0 when not recorded
  uint64_t sequence{};   // position in the program's order of calls
  uint64_t signature{};  // trace::op_signature()
  uint64_t size{};       // bytes copied or set
  bool captured{};  // goes into a graph, or makes an object of addresses: the driver looks at these, and nothing runs
  const char* name{};  // kernel name or the call's name; lives as long as the process
};
inline constexpr uint32_t kMaxPayloadBytes = 40 * 1024;

// Work that may wait for something that the program does later, as copies never do.
inline bool may_wait_for_program(trace::OpKind op) noexcept {
  using enum trace::OpKind;
  return op == launch || op == graph_launch || op == host_function || op == other;
}

struct AllocateCall {
  uint64_t allocation;  // the id that this allocation has when it succeeds: what Access::allocation will say
  uint64_t sequence;    // position in the program's order of calls
  uint64_t size;        // bytes, as asked for; pitched allocations: pitch times height
  trace::Origin origin;
  CUdevice device;
  CUcontext context;
  CUstream stream;  // of stream-ordered allocations, else CU_STREAM_LEGACY
  uint32_t stream_id;
  CUmemoryPool pool;  // of Origin::async and Origin::pool
};

struct FreeCall {
  uint64_t allocation;
  uint64_t sequence;  // position in the program's order of calls
  CUdeviceptr address;
  uint64_t size;
  trace::Origin origin;
  bool stream_ordered;  // cuMemFreeAsync
  CUcontext context;
  CUstream stream;
  uint32_t stream_id;
};

}  // namespace reprise
