// Which loops the planner is asked about, and how often: each question costs a processor for a while, and most of what
// repeats first is a part of what the program repeats. Caller: PlanSession.
#pragma once
#include <cstdint>
#include <vector>

namespace reprise::replay {

class PlannerQuestions {
 public:
  // A loop repeats (Detector::loop()), after so many calls of the program. false: it was asked about often enough;
  // until the program has made twice the calls, for a longer recording may say more.
  bool may_ask(uint64_t loop, uint64_t calls) noexcept;
  void forget_loops() noexcept { asked_about_.clear(); }
  uint64_t last_loop() const noexcept { return asked_about_.empty() ? 0 : asked_about_.back(); }

  // Answers. The iteration covers less of the recording than was asked for.
  void answered_part(uint64_t calls) noexcept;
  // It begins where much is alive.
  void answered_early() noexcept { ++early_answers_; }
  void answered_plan() noexcept;
  // There is no plan of it. true: with plans there, so many in a row that no more is asked for now.
  bool answered_none(bool has_plans) noexcept;

  // How much of the recorded device time an iteration has to cover, in %. What repeats first may be a small part of
  // what the program repeats: the batches of an evaluation, where each step differs from the one before it, and only
  // steps and evaluation together repeat. A plan of the part would keep the whole from being found: it begins wherever
  // its first calls come, and what it rules is not recorded.
  uint32_t least_share(bool has_plans, uint64_t calls) const noexcept;
  // Has it to begin where least is alive?
  bool best_start(bool has_plans) const noexcept;

  // Nothing is planned of this loop, which is too large. One that comes behind it may fit: it is looked for when the
  // program has made twice the calls, so that a loop which looks like another one now and then costs few questions.
  void leave_out(uint64_t loop, uint64_t calls) noexcept;
  bool is_another(uint64_t loop, uint64_t calls) const noexcept;

 private:
  std::vector<uint64_t> asked_about_;  // the loop of each question
  uint64_t ask_all_again_at_ = 0;      // calls
  uint32_t fruitless_ = 0;             // questions in a row that gave no plan, since there is one
  uint64_t part_since_ = 0;            // calls when what repeated was first too small a part; 0: it never was
  uint32_t early_answers_ = 0;
  uint64_t left_out_ = 0;  // loop
  uint64_t look_again_at_ = 0;
};

// As a loop to leave out: none has this hash.
inline constexpr uint64_t kNoLoop = 1;
// Once there is a plan: questions in a row that give no other one, before there are none for a while.
inline constexpr uint32_t kMostFruitless = 8;
// PlannerQuestions about the same loop, and plans of it.
inline constexpr uint32_t kMostAboutOneLoop = 3;

}  // namespace reprise::replay
