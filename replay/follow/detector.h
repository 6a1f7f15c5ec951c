// Finds, cheaply and online, that the program's calls repeat: a rolling guess of the period over one 64-bit word per
// call. Only a trigger: whether the repetition is an iteration is the planner's exact decision. Caller: the enforcer,
// once per call, under its submission lock.
#pragma once
#include <cstdint>
#include <vector>

namespace reprise::replay {

class Detector {
 public:
  // Keeps so many words; longer periods are not found.
  explicit Detector(uint64_t history = 1u << 20) noexcept;

  // The word is a hash of what the call is (kind, signature) and of the live set. True when the last two periods were
  // equal for the first time at this distance: now is the moment to ask the planner.
  bool add(uint64_t word) noexcept;

  // The planner is asked about what was seen up to now.
  void asked() noexcept;
  // It said that this was no iteration: be quiet until so much more has been seen that it is worth another question,
  // or, not `soon`, until twice as many calls have been seen.
  void rejected(bool soon) noexcept;
  // A plan was made of what was seen: what repeats besides is another matter. Quiet for so many calls.
  void restart(uint64_t quiet) noexcept;
  // Says which loop this is, wherever in it the question comes up: a hash of the calls of a period.
  uint64_t loop() const noexcept;

  uint64_t period() const noexcept { return period_; }
  // Whole periods in a row that are equal, up to now.
  uint64_t repetitions() const noexcept { return period_ == 0 ? 0 : run_ / period_ + 1; }
  uint64_t calls() const noexcept { return count_; }
  // The words that are kept, in order.
  template <typename Each>
  void for_each_word(Each each) const noexcept {
    for (uint64_t i = count_ > history_.size() ? count_ - history_.size() + 1 : 1; i <= count_; ++i) each(at(i));
  }

 private:
  struct Last {
    uint64_t word = 0;
    uint64_t position = 0;  // from 1; 0: empty
  };
  uint64_t at(uint64_t position) const noexcept { return history_[position % history_.size()]; }
  uint64_t exchange_last(uint64_t word, uint64_t position) noexcept;

  std::vector<uint64_t> history_;
  std::vector<Last> last_;
  uint64_t count_ = 0;
  uint64_t floor_ = 0;   // calls before the restart
  uint64_t period_ = 0;  // 0: no guess
  uint64_t run_ = 0;     // calls in a row that equal those one period earlier
  uint64_t quiet_until_ = 0;
  uint64_t asked_at_ = 0;      // calls that were seen by then
  uint64_t asked_period_ = 0;  // then
  uint64_t wait_ = 0;          // calls between the last rejection's question and the next; since the restart
};

}  // namespace reprise::replay
