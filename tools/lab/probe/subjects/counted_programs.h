// Programs that run under the counting shim, and what it says about each: launches seen against kernels that CUPTI
// recorded, parameter information, pointers. Callers: sections 1 and 6, debugged_program, allocators.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// Which process loads the counting shim: the program that is started, by LD_PRELOAD; a child of it, by the program's
// arguments; none, for comparison.
enum class ShimIn { program, child, nobody };

struct CountedProgram {
  std::string name;
  std::vector<std::string> arguments;
  std::string missing;  // why it cannot run here; empty: it can
  bool on_simulated_device = false;
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours; an empty value removes
  ShimIn shim = ShimIn::program;
  double seconds = 3600;  // at most, where the section has more left
};

struct Counted {
  CountedProgram program;
  Status status;  // why there are no counts
  bool skipped = false;
  std::string output;
  Json counts;

  Json said() const;  // its last line; parsed where it is JSON
  uint64_t launches(const char* kernel) const;
};

// Runs all of them, several at a time: they are counted, not timed. `cupti`: empty, launches are counted only.
std::vector<Counted> run_counted(const SectionContext& context, const std::vector<CountedProgram>& programs,
                                 const std::string& cupti);
// True when there is something to report; otherwise a note says why not.
bool usable(SectionContext& context, const Counted& counted);

// The path of the library that counts, and a Python program of the probe's that is to run under it.
std::string counting_shim();
CountedProgram python_program(const SectionContext& context, const char* script);

// The probe itself, the runtime programs, the libraries' and the Python scripts, in this order.
std::vector<CountedProgram> counted_programs(const SectionContext& context);

// Launches by kernel name, as the shim saw them and as CUPTI recorded them; which names and how many differ. A
// difference in the totals is reported as what it is: launches that the shim missed, or records that CUPTI lacks.
struct Parity {
  uint64_t seen = 0;              // kernels launched through the shim's entry points, graphs' kernel nodes included
  uint64_t recorded = 0;          // CUPTI's kernel records
  Json missed = Json::object();   // name: how many more CUPTI recorded than the shim saw
  Json surplus = Json::object();  // name: how many more the shim saw than CUPTI recorded
};
Parity compare(const Json& shim_counts);

Status report_parity(SectionContext& context);
Status report_library_parameters(SectionContext& context);

}  // namespace reprise::probe
