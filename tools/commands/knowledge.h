// What plans may rest on and use, by the options that `reprise plan` and `reprise simulate` share: the same options,
// the same plan.
#pragma once
#include <string>

#include "analyzer/planner/planner.h"

namespace reprise::tools {

struct Knowledge {
  std::string safety;
  std::string facts;  // the folder; empty: that of REPRISE_FACTS, or the cache folder
  bool no_facts = false;
  bool no_recompute = false;
  std::string nvdisasm;  // by which kernels' code is read; empty: REPRISE_NVDISASM, or it is looked for
  bool ssd = false;      // the machine's may be used, which no replay does yet
};

// "none": what code proves does not count.
std::string disassembler_of(const Knowledge& knowledge);

// Where no facts can be read, kernels are taken to read and write all. With strict safety nothing that comes from a
// trace goes without a copy, whatever is known.
void set_knowledge(const Knowledge& knowledge, bool is_graph, analyzer::PlanOptions& options);

}  // namespace reprise::tools
