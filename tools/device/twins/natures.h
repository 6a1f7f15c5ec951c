// What kernels without a twin do with their operands, where REPRISE_SIM_KERNELS asks for that: drawn from each kernel's
// name, so that it is the same in every run, and neither the preloaded library nor the planner can know it. Without the
// variable every operand is read and written. What holds nothing yet is written whatever is drawn: no program reads
// bytes that nobody set, so that frameworks run with natures, too. Caller: dataflow hashing.
#pragma once
#include <cstdint>
#include <string_view>

namespace reprise::sim {

struct Use {
  bool reads = true;
  bool writes = true;
};

// What makes a kernel other than it looks.
enum class Lie : uint8_t {
  none,
  not_pure,      // launched again for the same call of the program it gives other results
  part,          // it leaves the second half of what it writes as it was, where something was written before
  now_and_then,  // it writes what it reads, too, in one of eight contents
  zeros,         // it clears what it writes, now and then what is zero already
};

class Nature {
 public:
  // Of the kernel with this name; `seed` 0: reads and writes all.
  Nature(std::string_view kernel, uint64_t seed, bool lies);

  // Of the operand whose address is the word at `place`; `first`: it is the launch's first.
  Use use(uint32_t place, bool first) const;
  Lie lie() const { return lie_; }

 private:
  uint64_t seed_;  // of the kernel; 0: all is read and written
  Lie lie_ = Lie::none;
};

// Which of a launch's operands held nothing when it was made for this call of the program: a bit each. `now`: those
// that hold nothing now, which is the answer the first time, and where calls have no order.
uint64_t empty_operands(std::string_view kernel, uint64_t call, uint64_t now);

// How often launches of this kernel were made for this call of the program before. 0 where calls have no order.
uint64_t earlier_launches(std::string_view kernel, uint64_t call);

}  // namespace reprise::sim
