// What became of a recording that the user asked for: whole, cut short, or nothing. Callers: record, and run --trace.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/status.h"
#include "tools/launch/launcher.h"

namespace reprise::tools {

enum class RecordingState { whole, none, cut_short, failed };

struct Recording {
  RecordingState state = RecordingState::whole;
  // One line, with the name that the user gave. Whole: its size, and how many records were lost. None: empty.
  std::string line;
};

Recording look_at_recording(const std::string& name, const std::string& path, const Outcome& outcome);

// Where a program starts others that use the device, each of them is recorded: the first one into the run's own trace,
// the others beside it, with a link in the trace's folder, or there (preload/start/entry.cpp). Those that there are.
std::vector<std::string> recordings_beside(const std::string& own);

// The trace's "time.start_ns", without reading all of it; 0: it cannot be told.
uint64_t recorded_since(const std::string& path);

// Puts one of them into the place of the run's own; "": none. The others, `keep`, lie in the folder then; else they go.
Status choose_recording(const std::string& own, const std::string& chosen, bool keep);

}  // namespace reprise::tools
