// What every section of the probe gets and gives. A section is one function in one file; main runs each in a process of
// its own, under a time limit.
#pragma once
#include <array>
#include <functional>
#include <string>

#include "tools/lab/probe/measure/device.h"
#include "tools/lab/probe/measure/driver.h"
#include "tools/lab/probe/measure/limit.h"
#include "tools/lab/probe/output/machine_file.h"
#include "tools/lab/probe/output/report.h"

namespace reprise::probe {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kWantedChunk = 2 * kMiB;  // the planner's default

struct Options {
  int device = 0;
  double seconds = 60;        // for each section
  std::string scratch = ".";  // a folder on the disk that the SSD tests use
  std::string python = "python3";
};

struct SectionContext {
  const Driver& driver;
  const Device& device;
  const Options& options;
  const Limit& limit;
  SectionReport& report;
  Machine& machine;
  std::function<void()> save = [] {};  // keeps what there is, should the rest of the section end this process
};

// Runs one measurement of a section unless the time is over; a failure becomes a note, and the section goes on.
template <typename Work>
void attempt(SectionContext& context, const char* what, Work&& work) {
  if (context.limit.over()) {
    context.report.note(std::string(what) + ": left out, " + (interrupted() ? "interrupted" : "the time was up"));
    context.report.set_partial();
    return;
  }
  if (const Status status = work(context); !status.ok()) {
    context.report.note(std::string(what) + ": " + status.message());
    context.report.set_partial();
  }
  context.save();
}

void measure_interception(SectionContext& context);
void measure_vmm(SectionContext& context);
void measure_aliasing(SectionContext& context);
void measure_link(SectionContext& context);
void measure_latency(SectionContext& context);
void measure_parameters(SectionContext& context);
void measure_cupti(SectionContext& context);
void measure_purity(SectionContext& context);

struct Section {
  int number;
  const char* name;
  void (*run)(SectionContext& context);
};
inline constexpr std::array<Section, 8> kSections = {{{1, "interception", measure_interception},
                                                      {2, "vmm", measure_vmm},
                                                      {3, "aliasing", measure_aliasing},
                                                      {4, "link", measure_link},
                                                      {5, "latency", measure_latency},
                                                      {6, "parameters", measure_parameters},
                                                      {7, "cupti", measure_cupti},
                                                      {8, "purity", measure_purity}}};

}  // namespace reprise::probe
