// What became of a recording that the user asked for: whole, cut short, or nothing. Callers: record, and run --trace.
#pragma once
#include <string>

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

}  // namespace reprise::tools
