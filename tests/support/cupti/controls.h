// What tests ask of the fake CUPTI, by name in its library (library.cpp).
#pragma once
#include <cupti.h>

#include <cstdint>

struct FakeCuptiCounts {
  unsigned enabled;     // kinds and calls, now
  unsigned subscribed;  // clients, now
  int64_t outstanding;  // buffers that were requested and not completed
  uint64_t requested;   // buffers
  uint64_t records;     // put into buffers
  uint64_t dropped;     // for want of one
  uint64_t works;       // kernels
  uint64_t foreign;     // buffers that the other tool got and had not given
};

extern "C" {
FakeCuptiCounts fake_cupti_counts();
// cuptiActivityEnable() of this kind fails.
void fake_cupti_refuse(CUpti_ActivityKind kind);
// Ids are attached to calls only where CUPTI_ACTIVITY_KIND_DRIVER is enabled as a whole.
void fake_cupti_links_need_all_calls(bool value);
// A call of the driver by this thread; a launch by this thread, that ran from `start` to `end` on CUPTI's clock.
void fake_cupti_call(CUpti_CallbackId id);
void fake_cupti_kernel(uint64_t start, uint64_t end);
// Another tool: subscribes (false: refused), leaves, registers its callbacks without asking.
bool fake_cupti_other_subscribes();
void fake_cupti_other_leaves();
void fake_cupti_other_registers();
}
