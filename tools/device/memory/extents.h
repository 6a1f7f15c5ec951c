// The program's own allocations as the dataflow-hash executor must see them: those that were live when the program made
// the call. Under the shim a launch reaches this driver later, when the program may have freed one of them and the
// address may mean another. Callers: launches, copies, memsets when they are made.
#pragma once
#include <cstdint>
#include <memory>

#include "tools/device/base/written.h"

namespace reprise::sim {

struct Extent {
  uint64_t base = 0;
  uint64_t bytes = 0;
  std::shared_ptr<WrittenBytes> written;
};

// The allocation that holds `address`, as of the call that the calling thread performs; false: none.
bool find_extent(uint64_t address, Extent* extent);

// A place in an allocation that a copy or memset writes to; nothing where the bytes are no allocation of the program,
// or the shim moves them, which is no write.
class WrittenPlace {
 public:
  static WrittenPlace at(uint64_t address);
  void mark(uint64_t address, uint64_t bytes) const;
  // ... with what is copied from `source`.
  void copy(uint64_t address, const WrittenPlace& source, uint64_t source_address, uint64_t bytes) const;
  bool known() const { return extent_.written != nullptr; }

 private:
  Extent extent_;
};

// Is `word` an address that the driver knows, of whatever kind? Such values differ between runs.
bool is_known_address(uint64_t word);

}  // namespace reprise::sim
