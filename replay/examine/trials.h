// One launch, tried again and again from bytes that are chosen: what it does with each operand. The program's bytes are
// kept on the host meanwhile, and are back when a Trials ends. Caller: the examiner, on the dispatcher's thread, while
// nothing else is with the driver.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "preload/facts/facts.h"
#include "replay/digest/digests.h"
#include "replay/examine/disturbance.h"
#include "replay/examine/host_copies.h"
#include "replay/memory/lanes.h"

namespace reprise::replay {

// Launches what is examined once more, on its stream.
struct Launcher {
  CUresult (*launch)(void* user) noexcept;
  void* user;
};

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

class Trials {
 public:
  // Host memory for copies of what operands of these sizes hold.
  static uint64_t bytes_of_copies(const std::vector<TriedOperand>& operands) noexcept;

  Trials(Lanes* lanes, Digests* digests, HostCopies* memory, LaneIndex lane, std::vector<TriedOperand> operands,
         Launcher launcher) noexcept;
  ~Trials();

  // Reads the operands. False: no memory, or the driver refused; then nothing has happened.
  bool keep() noexcept;
  // Does one of them hold a word that may be an address of live memory?
  bool hold_address(const LiveRanges& live) const noexcept;
  // The program's own launch; its answer. *done false: it does not end in time, or reading failed. Then nothing else
  // may be tried.
  CUresult first(bool* done) noexcept;
  // All trials, and the bytes of the first launch again. False: the device failed.
  bool run(facts::KernelFacts* facts) noexcept;
  // From which bytes the last launch began.
  const char* from() const noexcept { return from_; }

 private:
  static constexpr uint64_t kPatience = 5'000'000'000;  // ns for one launch
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

  CUresult launch() noexcept;
  bool launch_and_wait() noexcept;
  bool begin_company() noexcept;
  bool read(size_t i, unsigned char* to) noexcept;
  // Its digest, now. False: none can be computed, or the device failed.
  bool digest(size_t i, DigestCell cell) noexcept;
  // *same: it holds these bytes, of which that is the digest, if it is one.
  bool holds(size_t i, const unsigned char* bytes, DigestCell of_them, bool* same) noexcept;
  bool holds_disturbed(size_t i, uint32_t pattern, bool* same) noexcept;
  bool write(size_t i, const unsigned char* from) noexcept;
  AroundLaunch around_first(size_t i) const noexcept;
  // What the launch left, or the pattern, where either may be.
  bool lay(size_t i, const unsigned char* pattern) noexcept;
  bool disturb(size_t i, uint32_t pattern) noexcept;
  bool rewind() noexcept;
  bool as_first(size_t but, bool* same) noexcept;
  bool repeats(bool* same) noexcept;
  bool overwrites(const std::vector<size_t>& set, bool* same) noexcept;
  bool keeps(const std::vector<size_t>& set, uint32_t pattern, std::vector<bool>* kept, bool* reached) noexcept;
  bool try_changed(std::vector<facts::SlotEvidence>* slots) noexcept;
  bool try_kept(std::vector<facts::SlotEvidence>* slots) noexcept;
  bool restore() noexcept;
  bool may_be_written(size_t i) const noexcept;

  Lanes& lanes_;
  Digests& digests_;
  HostCopies& memory_;
  const LaneIndex lane_;
  const std::vector<TriedOperand> operands_;
  const Launcher launcher_;
  std::vector<Copies> copies_;
  unsigned char* scratch_ = nullptr;  // as large as the largest operand
  DigestCell now_ = kNoDigest;
  const char* from_ = "";
};

}  // namespace reprise::replay
