// From an understood call to the handler: fills in what all commands have in common, hands the command over, records
// it. Callers: hooks.
#pragma once
#include <initializer_list>

#include "preload/access/command_builder.h"
#include "preload/base/guard.h"
#include "preload/tracking/streams.h"

namespace reprise {

// Sequence, context, signature; then the handler; then the recorder. Returns what the program shall see.
CUresult submit(CommandBuilder& builder) noexcept;

// Of a copy or memset: is it of memory that the program has freed, or does it reach past the end of what it has? The
// driver refuses that, and cannot tell of memory that the handler manages: there is a whole chunk, and it stays for a
// while.
bool outside_memory(CUdeviceptr address, uint64_t bytes) noexcept;
// Where the driver is to judge `bytes` from `address` on, device memory by the program's word, it does so before the
// call returns: an order that is put off comes too late to be refused. false: it may be refused.
bool hold_to_memory(CommandBuilder& builder, CUdeviceptr address, uint64_t bytes) noexcept;

// Are any of these in memory that the handler manages? Notes those.
bool touch_managed(CommandBuilder& builder, std::initializer_list<CUdeviceptr> addresses) noexcept;
// To the handler, as a captured command.
CUresult look_up(CommandBuilder& builder) noexcept;

// For a call that goes into a graph, or makes an object of addresses: nothing runs, but the driver looks at the memory
// at `addresses`, which has to be there. Inside a HookScope. Calls `call()` and returns its answer, or an error
// instead.
template <typename Call>
CUresult with_operands(const char* name, std::initializer_list<CUdeviceptr> addresses, Call call) noexcept {
  struct Captured {
    Call* call;
    static CUresult issue(const void* payload, CUstream) noexcept {
      return (*static_cast<const Captured*>(payload)->call)();
    }
  };
  Access room[8];
  CommandBuilder builder(trace::OpKind::other, name, CU_STREAM_LEGACY, room, 8);
  if (!touch_managed(builder, addresses)) return call();
  const Captured payload{&call};
  builder.command.issue = &Captured::issue;
  builder.command.payload = &payload;
  builder.command.payload_bytes = sizeof payload;
  return look_up(builder);
}

// For calls whose Payload struct knows how to perform itself and what it touches:
//   static CUresult issue(const void* payload, CUstream stream) noexcept;
//   void describe(CommandBuilder& builder) const noexcept;
//   static constexpr trace::OpKind kOp; static constexpr const char* kName; static constexpr uint32_t kMaxAccesses;
// A call that is not watched, or is captured, is performed at once and untouched.
template <typename Payload>
CUresult run_on_stream(const Payload& payload, CUstream stream) noexcept {
  const HookScope scope;
  if (!scope) return Payload::issue(&payload, stream);
  if (capturing(stream)) {
    const auto issue = [&payload, stream] { return Payload::issue(&payload, stream); };
    if constexpr (requires { payload.span(); }) {
      if (outside_memory(payload.to, payload.span())) return CUDA_ERROR_INVALID_VALUE;
    }
    if constexpr (requires { payload.to; }) {
      return with_operands(Payload::kName, {payload.to}, issue);
    } else {
      return issue();
    }
  }
  Access room[Payload::kMaxAccesses];
  CommandBuilder builder(Payload::kOp, Payload::kName, stream, room, Payload::kMaxAccesses);
  builder.command.issue = &Payload::issue;
  builder.command.payload = &payload;
  builder.command.payload_bytes = sizeof payload;
  payload.describe(builder);
  return submit(builder);
}

// Is this host memory neither pinned nor otherwise known to the driver?
bool pageable(const void* host) noexcept;

}  // namespace reprise
