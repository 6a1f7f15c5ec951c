#include "replay/issue/refused_launches.h"

#include "preload/base/causes.h"
#include "preload/driver/results.h"
#include "preload/trace/names.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kMostTold = 8;  // with the shortages that executors tell of

bool is_launch(trace::OpKind op) { return op == trace::OpKind::launch || op == trace::OpKind::graph_launch; }

}  // namespace

void RefusedLaunches::refused(const LogEntry& entry, CUresult result) noexcept {
  const Command& command = entry.command;
  if (!is_launch(command.op) || is_sticky(result)) return;  // fault_report tells of a device that failed
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    if (shared_.counters.shortages.fetch_add(1) >= kMostTold) return;
    say<Cause::launch_out_of_memory>(command.name, result);
    return;
  }
  if (count_.fetch_add(1) != 0) return;
  first_.set(trace::shown_name(command.name) + " (CUDA error " + std::to_string(static_cast<int>(result)) + ")");
}

std::string RefusedLaunches::told() const noexcept {
  const uint64_t count = count_.load();
  std::string text = first_.get();
  if (count > 1) text += ", and " + std::to_string(count - 1) + " more behind it";
  return text;
}

}  // namespace reprise::replay
