// Joins CUPTI's records: work on the device carries a correlation number, and a record of its own says which pushed id
// that number belongs to; they come in any order and in different buffers. Callers: the CUPTI source and its test.
#pragma once
#include <cupti.h>

#include <cstdint>

#include "preload/record/activity/source.h"

namespace reprise {

class CuptiRecords {
 public:
  // Fixed memory, mapped here. false: none.
  bool create() noexcept;

  // Takes what concerns us of one record. `offset_ns` is added to its times.
  void add(const CUpti_Activity* record, int64_t offset_ns) noexcept;

  // Hands over the work whose id is known, and keeps the rest for later. TimedWork that was done outside of any push
  // is forgotten when newer work needs its place.
  void deliver(ActivityCallback callback, void* user) noexcept;

  // So many pieces of work came without any record of a pushed id, since this was asked to count anew.
  uint64_t unexplained() const noexcept { return links_ == 0 ? works_ : 0; }
  void count_anew() noexcept { links_ = works_ = 0; }

 private:
  struct Correlation {
    uint32_t correlation;
    uint64_t id;
  };
  struct TimedWork {
    uint32_t correlation;
    uint64_t start_ns;
    uint64_t end_ns;
  };
  static constexpr uint32_t kKnown = 1u << 18;  // correlation numbers rise by one per call: a window of so many calls
  static constexpr uint32_t kWork = 1u << 16;

  void add_work(uint32_t correlation, uint64_t start, uint64_t end, int64_t offset_ns) noexcept;

  Correlation* known_ = nullptr;  // index: correlation modulo kKnown
  TimedWork* work_ = nullptr;     // a ring
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  uint64_t links_ = 0;
  uint64_t works_ = 0;
};

}  // namespace reprise
