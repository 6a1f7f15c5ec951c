// Kernel facts: what launches of a kernel were seen to do with each operand, and whether they gave the same bytes
// again. Evidence, counted; what follows from it is a function of the counts. Written by the replay's examiner, read by
// the analyzer and by `reprise facts`. Plain data with one form, a text with a checksum.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::facts {

// What an examined launch showed of one operand. A launch adds to one of the first four, but for `reached`.
struct SlotEvidence {
  uint32_t parameter_offset = 0;  // where in the parameters its address stands
  uint64_t overwritten = 0;       // other bytes are there afterwards, the same ones whatever was there before
  uint64_t updated = 0;           // ... and they depend on what was there before
  uint64_t kept = 0;              // the bytes that were there, also when those were others
  uint64_t same = 0;              // the bytes that were there; others could not be tried
  uint64_t reached = 0;           // other bytes there gave other results
  uint64_t least_bytes = 0;       // of the operand
  uint64_t most_bytes = 0;
};

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
  std::vector<SlotEvidence> slots;  // by parameter_offset, each once
};

const SlotEvidence* find_slot(const KernelFacts& facts, uint32_t parameter_offset) noexcept;

// On doubt unknown, which is to be taken for yes. A slot that is not there: unknown.
Answer writes(const KernelFacts& facts, uint32_t parameter_offset) noexcept;
// Does what it leaves in the operand, or anywhere, depend on what was in the operand before?
Answer reads(const KernelFacts& facts, uint32_t parameter_offset) noexcept;
// Does it give the same bytes whenever it reads the same? yes: in every launch that was looked at.
Answer pure(const KernelFacts& facts) noexcept;

// Adds the evidence of `more`, which is of the same kernel.
void merge(KernelFacts& facts, const KernelFacts& more);

// A line each; the last one is a checksum. from_text: what to_text() made, else an error that says why.
std::string to_text(const KernelFacts& facts);
Result<KernelFacts> from_text(const std::string& text);

}  // namespace reprise::facts
