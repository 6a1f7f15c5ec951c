// Kernel facts: what launches of a kernel were seen to do with each operand, whether they gave the same bytes again,
// and whether they touched what no operand leads to. Evidence, counted; what follows from it is a function of the
// counts. Written by the replay's examiner and auditor, read by the analyzer and by `reprise facts`. Plain data with
// one form, a text with a checksum.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::facts {

// What an examined launch showed of one operand. A launch adds to one of the first five.
struct SlotEvidence {
  uint32_t parameter_offset = 0;  // where in the parameters its address stands
  uint64_t overwritten = 0;       // other bytes are there afterwards, the same ones whatever was there before
  uint64_t written = 0;           // ... the same ones so far, but not all of what was there could be changed
  uint64_t updated = 0;           // ... and they depend on what was there before
  uint64_t kept = 0;              // the bytes that were there, also when those were others
  uint64_t same = 0;              // the bytes that were there; others could not be tried
  uint64_t reached = 0;           // other bytes there gave other results
  uint64_t least_bytes = 0;       // of the operand
  uint64_t most_bytes = 0;
  uint64_t guarded = 0;  // audited launches in which it was mapped to be read only: they wrote nothing there
  uint64_t led = 0;      // audited launches that touched what none of their operands is, while this held its address
};

// Launches in `reprise audit`, in which nothing was mapped but what their operands lead to: all of one shape.
struct AuditedShape {
  uint64_t shape = 0;  // shape_of()
  uint64_t launches = 0;
};
// The rule: so many launches of a shape make it audited, unless any launch of the kernel went astray.
inline constexpr uint64_t kAuditedLaunches = 4;
inline constexpr size_t kMostShapes = 1024;  // that are kept of a kernel; launches of others stay unaudited

// Version of the analysis of machine code (analyzer/code), on which facts and plans rest. It grows when the analysis
// says something else of some kernel.
inline constexpr uint32_t kCodeVersion = 2;

enum class Answer : uint8_t { unknown, no, yes };

struct KernelFacts {
  uint64_t kernel = 0;    // identity: hash of the image that it comes from, of its name and its parameters
  std::string name;       // mangled
  std::string device;     // the device's name: what one device does says nothing of another
  uint64_t launches = 0;  // examined
  uint64_t equal = 0;     // launched again from the same bytes, they gave the same
  uint64_t unequal = 0;
  std::string first_day;  // YYYY-MM-DD
  std::string last_day;
  uint64_t strayed = 0;              // audited launches that touched what none of their operands is
  std::vector<SlotEvidence> slots;   // by parameter_offset, each once
  std::vector<AuditedShape> shapes;  // by shape, each once
};

const SlotEvidence* find_slot(const KernelFacts& facts, uint32_t parameter_offset) noexcept;

// On doubt unknown, which is to be taken for yes. A slot that is not there: unknown.
Answer writes(const KernelFacts& facts, uint32_t parameter_offset) noexcept;
// Does what it leaves in the operand, or anywhere, depend on what was in the operand before?
Answer reads(const KernelFacts& facts, uint32_t parameter_offset) noexcept;
// Does it give the same bytes whenever it reads the same? yes: in every launch that was looked at.
Answer pure(const KernelFacts& facts) noexcept;

// What makes two launches of a kernel alike for an audit: which memory it reaches may follow from all of this, though
// not from this alone (numbers among its parameters, what its operands hold). Operands in the order of their places.
struct ShapeOperand {
  uint32_t parameter_offset = 0;
  uint64_t bytes = 0;  // of the tensor that it leads to
};
uint64_t shape_of(const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
                  std::vector<ShapeOperand> operands);
// Do launches of this shape touch nothing but their operands? no: a launch of the kernel, of whatever shape, did more.
Answer audited(const KernelFacts& facts, uint64_t shape) noexcept;
uint64_t audited_launches(const KernelFacts& facts) noexcept;

// Adds the evidence of `more`, which is of the same kernel.
void merge(KernelFacts& facts, const KernelFacts& more);

// A line each; the last one is a checksum. from_text: what to_text() made, else an error that says why.
std::string to_text(const KernelFacts& facts);
Result<KernelFacts> from_text(const std::string& text);

}  // namespace reprise::facts
