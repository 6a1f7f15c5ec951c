// Makes the driver calls of one entry of the command log, and tells what came of them. Callers: the on-demand and the
// plan executor, on the dispatcher's thread.
#pragma once
#include "replay/issue/fault_report.h"
#include "replay/issue/refused_launches.h"
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

class Issuer {
 public:
  Issuer(Shared* shared, ManagedMemory* memory) noexcept
      : fault_report(shared, memory), refused_launches(shared), shared_(*shared), memory_(*memory) {}

  // Makes the context of the entry current for this thread.
  void enter_context(CUcontext context) noexcept;
  // The driver call of an op on its stream, bracketed for the activity source with `activity_id` (0: not wanted).
  // Not for entries that the program issues.
  CUresult issue(LogEntry& entry, uint64_t activity_id) noexcept;
  // After issue: staging memory becomes free when `use` is complete; the waiting thread gets the result, or else a
  // fault is kept for a later call.
  void conclude(LogEntry& entry, CUresult result, LaneUse use) noexcept;
  // Events, stream ends.
  void issue_event_record(LogEntry& entry) noexcept;
  void issue_event_wait(LogEntry& entry) noexcept;
  void issue_stream_destroy(LogEntry& entry) noexcept;

  FaultReport fault_report;
  RefusedLaunches refused_launches;

 private:
  void order_refused(CUresult result, const char* name) noexcept;
  Shared& shared_;
  ManagedMemory& memory_;
};

}  // namespace reprise::replay
