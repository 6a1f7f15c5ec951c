// From an understood call to the handler: fills in what all commands have in common, hands over, records. Callers:
// hooks.
#pragma once
#include "preload/allocations.h"
#include "preload/command.h"
#include "preload/guard.h"
#include "preload/streams.h"

namespace reprise {

// A command under construction with room for its accesses. The array is the caller's (stack memory).
class CommandBuilder {
 public:
  CommandBuilder(trace::OpKind op, const char* name, CUstream stream, Access* room, uint32_t capacity) noexcept;

  // Notes that `bytes` from `address` on are read or written (0: up to the allocation's end). An address that belongs
  // to no known allocation is not noted; returns whether it does. Too many accesses make the command opaque.
  bool touch(CUdeviceptr address, uint64_t bytes, uint32_t mode,
             uint32_t parameter_offset = trace::kNoParameter) noexcept;
  void touch(const Allocation& allocation, CUdeviceptr address, uint64_t bytes, uint32_t mode,
             uint32_t parameter_offset) noexcept;
  bool touches(uint64_t allocation) const noexcept;
  void flag(trace::OpFlags flags) noexcept { command.flags = static_cast<uint16_t>(command.flags | flags); }

  Command command{};
  bool holds_pointers = false;  // one of the accesses is to memory that device addresses were copied into
  Access* const accesses;
  const uint32_t capacity;
};

// Sequence, context, signature; then the handler; then the recorder. Returns what the program shall see.
CUresult submit(CommandBuilder& builder) noexcept;

// Tells the recorder about work that is forwarded without being understood.
void record_opaque(const char* name) noexcept;

// For calls whose Payload struct knows how to perform itself and what it touches:
//   static CUresult issue(const void* payload, CUstream stream) noexcept;
//   void describe(CommandBuilder& builder) const noexcept;
//   static constexpr trace::OpKind kOp; static constexpr const char* kName; static constexpr uint32_t kMaxAccesses;
// Not watched, or captured: performed at once and untouched.
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
