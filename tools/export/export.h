// The formats of other tools: Perfetto's JSON, tables, graphs. Each takes whatever of trace, plan and run log there is
// and returns the whole file's content, or says what it lacks. Called by `export`.
#pragma once
#include <cstdint>
#include <string>

#include "preload/trace/status.h"
#include "tools/report/report.h"

namespace reprise::exports {

using report::Inputs;
using report::Json;

// Trace events as ui.perfetto.dev and chrome://tracing read them: device work by engine and stream, host calls by
// thread, memory counters; the plan's prediction and the run's iterations as processes of their own. Sorted by time.
Result<std::string> to_perfetto(const Inputs& inputs);

// One table: the iterations of a run log, else the vertices of a plan, else the ops of a trace. Callers that have
// several give them one by one.
Result<std::string> to_csv(const Inputs& inputs);

// One table: what each tensor of a plan costs, the worst first, as the report's.
Result<std::string> to_tensor_table(const Inputs& inputs);

// Of a plan's vertices, or of a trace's ops, those to draw.
struct Window {
  size_t first = 0;
  size_t count = SIZE_MAX;
};

// The graph for Graphviz: the plan's MemGraph, or of a trace which op used a tensor after which. Refuses graphs that no
// layout program can draw.
Result<std::string> to_dot(const Inputs& inputs, const Window& window = {});

// What is in the files, field by field: all of a trace and a plan; of a run log what the report reads, and under
// "lines" all that `run_log`, its text, has. Numbers that JavaScript's cannot hold (hashes, addresses, handles) are
// texts of 16 hexadecimal digits.
Result<std::string> to_json(const Inputs& inputs, const std::string& run_log = {});

}  // namespace reprise::exports
