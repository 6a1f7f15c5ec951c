// A small iteration that has everything the tools show: a kept tensor, a small one, and two that share their chunks, so
// that one leaves and comes back. Times are round, so that tests can name them. Callers: tests of the report, the
// exports and the command line.
#pragma once
#include <string>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"

namespace reprise::tools::test {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Compute: make [0,100), wait, other [300,400), both [400,450), wait, use [650,750).
// Copies: offload of tensor 2 [100,300), reload [450,650).
plan::Plan sample_plan();
// Two iterations of it, with device times for the first op of each.
trace::Trace sample_trace();
// Three iterations: one on demand, two planned, a divergence.
std::string sample_run_log();

}  // namespace reprise::tools::test
