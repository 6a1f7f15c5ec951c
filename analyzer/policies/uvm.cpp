// Unified memory without hints: what a kernel touches comes when it faults, and what was used least recently makes room
// for it then. Modelled: no copy in either direction begins before the op that needs it is next; faults cost latency
// beside the bytes. Not modelled: pages smaller than tensors, parts of a kernel that run before its last page is there,
// faults of fresh memory, the driver's own prefetch of neighbours, and pages of freed tensors, which it moves, too.
#include "analyzer/policies/least_recently_used.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

// A batch of faults: handling takes 45 us (G10's Table 2). With 512 KiB in a batch, 6.7 GB/s come over a link of 15.75:
// kernels with faulting inputs in the traces of G10's artifact, on an A100, see 4.8 to 7.3.
constexpr uint64_t kFaultBatchNs = 45'000;
constexpr uint64_t kFaultBytes = uint64_t{512} << 10;

class Uvm : public Policy {
 public:
  std::string_view name() const override { return "uvm"; }
  Schedule schedule(const PolicyInput& input) const override {
    LeastRecentlyUsed chooser;
    WalkOptions options{input.capacity, input.carry_visitors};
    options.lead = 0;
    Schedule schedule = walk(input.graph, options, chooser);
    for (Stay& stay : schedule.stays) {
      const uint64_t bytes = input.graph.tensors[stay.tensor].size;
      if (stay.arrival == Arrival::reload) stay.fault_ns = (bytes + kFaultBytes - 1) / kFaultBytes * kFaultBatchNs;
    }
    return schedule;
  }
};

}  // namespace

const Policy& uvm_policy() {
  static const Uvm& policy = *new Uvm;
  return policy;
}

}  // namespace reprise::analyzer
