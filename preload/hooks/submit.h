// From an understood call to the handler: fills in what all commands have in common, hands the command over, records
// it. Callers: hooks.
#pragma once
#include "preload/access/command_builder.h"
#include "preload/base/guard.h"
#include "preload/tracking/streams.h"

namespace reprise {

// Sequence, context, signature; then the handler; then the recorder. Returns what the program shall see.
CUresult submit(CommandBuilder& builder) noexcept;

// For calls whose Payload struct knows how to perform itself and what it touches:
//   static CUresult issue(const void* payload, CUstream stream) noexcept;
//   void describe(CommandBuilder& builder) const noexcept;
//   static constexpr trace::OpKind kOp; static constexpr const char* kName; static constexpr uint32_t kMaxAccesses;
// A call that is not watched, or is captured, is performed at once and untouched.
template <typename Payload>
CUresult run_on_stream(const Payload& payload, CUstream stream) noexcept {
  const HookScope scope;
  if (!scope || capturing(stream)) return Payload::issue(&payload, stream);
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
