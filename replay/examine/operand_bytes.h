// What the operands of a launch that is tried again hold: on the device now, and copies on the host of what the first
// launch found and left there. Caller: trials, on the dispatcher's thread, while nothing else is with the driver.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/digest/digests.h"
#include "replay/examine/disturbance.h"
#include "replay/examine/host_copies.h"
#include "replay/memory/lanes/lanes.h"

namespace reprise::replay {

// A tensor that the launch names.
struct TriedOperand {
  CUdeviceptr base = 0;
  uint64_t bytes = 0;
  uint32_t parameter_offset = 0;  // where its address stands
  bool several = false;           // ... and elsewhere, too: nothing is to be learnt of one place
  bool overwritten = false;       // by all launches so far, whatever was there
};

// Where live tensors are: [begin, end), ascending.
using LiveRanges = std::vector<std::pair<CUdeviceptr, CUdeviceptr>>;

class OperandBytes {
 public:
  struct Copies {
    unsigned char* before = nullptr;
    unsigned char* after = nullptr;  // `before` where the first launch changed nothing
    DigestCell left = kNoDigest;     // of what the first launch left
    DigestCell put = kNoDigest;      // of what was there before a launch
    bool changed = false;            // by the first launch
    bool counted = false;            // ... and counters are among that, or what may be some: nothing else is put there
    bool disturbed = false;          // the device holds other bytes than behind the first launch
    bool covered = true;             // patterns, or numbers with other bits, have been everywhere in it
  };

  // Host memory for copies of what operands of these sizes hold.
  static uint64_t bytes_of_copies(const std::vector<TriedOperand>& operands) noexcept;

  OperandBytes(Lanes* lanes, Digests* digests, HostCopies* memory, std::vector<TriedOperand> operands) noexcept;
  ~OperandBytes();
  OperandBytes(const OperandBytes&) = delete;
  OperandBytes& operator=(const OperandBytes&) = delete;

  const std::vector<TriedOperand>& operands() const noexcept { return operands_; }
  Copies& of(size_t i) noexcept { return copies_[i]; }

  // Reads the operands. False: no memory, or the driver refused; then nothing has happened.
  bool keep() noexcept;
  // Does one of them hold a word that may be an address of live memory?
  bool hold_address(const LiveRanges& live) const noexcept;
  // The first launch is complete: reads what it has changed. False: the device failed.
  bool look_behind_first() noexcept;
  // What it has changed, or may have left as it was because the same bytes were there already.
  bool may_be_written(size_t i) const noexcept;

  // *same: it holds these bytes, of which that is the digest, if it is one.
  bool holds(size_t i, const unsigned char* bytes, DigestCell of_them, bool* same) noexcept;
  // *same: it holds what disturb() has put there.
  bool holds_disturbed(size_t i, uint32_t pattern, bool* same) noexcept;
  // *same: every operand but this one holds what the first launch left there.
  bool as_first(size_t but, bool* same) noexcept;

  // What the launch left, or the pattern, where either may be.
  bool lay(size_t i, const unsigned char* pattern) noexcept;
  bool disturb(size_t i, uint32_t pattern) noexcept;
  // Everything as before the first launch; what it left.
  bool rewind() noexcept;
  bool restore() noexcept;

 private:
  bool read(size_t i, unsigned char* to) noexcept;
  bool write(size_t i, const unsigned char* from) noexcept;
  // Its digest, now. False: none can be computed, or the device failed.
  bool digest(size_t i, DigestCell cell) noexcept;
  AroundLaunch around_first(size_t i) const noexcept;

  Lanes& lanes_;
  Digests& digests_;
  HostCopies& memory_;
  const std::vector<TriedOperand> operands_;
  std::vector<Copies> copies_;
  unsigned char* scratch_ = nullptr;  // as large as the largest operand
  DigestCell now_ = kNoDigest;
};

}  // namespace reprise::replay
