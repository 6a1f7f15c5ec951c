// One launch, tried again and again from bytes that are chosen: what it does with each operand. The program's bytes are
// kept on the host meanwhile, and are back when a Trials ends. Caller: the examiner, on the dispatcher's thread, while
// nothing else is with the driver.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "preload/facts/facts.h"
#include "replay/digest/digests.h"
#include "replay/examine/host_copies.h"
#include "replay/examine/operand_bytes.h"
#include "replay/memory/lanes/lanes.h"

namespace reprise::replay {

// Launches what is examined once more, on its stream.
struct Launcher {
  CUresult (*launch)(void* user) noexcept;
  void* user;
};

class Trials {
 public:
  Trials(Lanes* lanes, Digests* digests, HostCopies* memory, LaneIndex lane, std::vector<TriedOperand> operands,
         Launcher launcher) noexcept;

  // Reads the operands. False: no memory, or the driver refused; then nothing has happened.
  bool keep() noexcept { return bytes_.keep(); }
  // Does one of them hold a word that may be an address of live memory?
  bool hold_address(const LiveRanges& live) const noexcept { return bytes_.hold_address(live); }
  // The program's own launch; its answer. *done false: it does not end in time, or reading failed. Then nothing else
  // may be tried.
  CUresult first(bool* done) noexcept;
  // All trials, and the bytes of the first launch again. False: the device failed.
  bool run(facts::KernelFacts* facts) noexcept;
  // From which bytes the last launch began.
  const char* from() const noexcept { return from_; }

 private:
  static constexpr uint64_t kPatience = 5'000'000'000;  // ns for one launch
  CUresult launch() noexcept;
  bool launch_and_wait() noexcept;
  bool begin_company() noexcept;
  bool repeats(bool* same) noexcept;
  bool overwrites(const std::vector<size_t>& set, bool* same) noexcept;
  bool keeps(const std::vector<size_t>& set, uint32_t pattern, std::vector<bool>* kept, bool* reached) noexcept;
  bool try_changed(std::vector<facts::SlotEvidence>* slots) noexcept;
  bool try_kept(std::vector<facts::SlotEvidence>* slots) noexcept;

  Lanes& lanes_;
  Digests& digests_;
  const LaneIndex lane_;
  const Launcher launcher_;
  OperandBytes bytes_;
  const char* from_ = "";
};

}  // namespace reprise::replay
