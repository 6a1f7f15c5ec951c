// Which loops the planner is asked about, and how often.
#include "replay/plans/planner_questions.h"

#include <gtest/gtest.h>

#include "analyzer/plan/least_share.h"

namespace reprise::replay {
namespace {

TEST(PlannerQuestions, ALoopIsAskedAboutThreeTimesUntilTheCallsHaveDoubled) {
  PlannerQuestions questions;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(questions.may_ask(7, 100));
  EXPECT_FALSE(questions.may_ask(7, 199));
  EXPECT_TRUE(questions.may_ask(8, 199)) << "another loop";
  EXPECT_TRUE(questions.may_ask(7, 200));
}

TEST(PlannerQuestions, WithoutAPlanEachAnswerOpensTheLoopAgain) {
  PlannerQuestions questions;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(questions.may_ask(7, 100));
    EXPECT_FALSE(questions.answered_none(false));
  }
}

TEST(PlannerQuestions, WithPlansEightFruitlessAnswersInARowEndThem) {
  PlannerQuestions questions;
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(questions.answered_none(true));
  questions.answered_plan();
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(questions.answered_none(true));
  EXPECT_TRUE(questions.answered_none(true));
  EXPECT_FALSE(questions.answered_none(true)) << "counted anew";
}

TEST(PlannerQuestions, APartIsPlannedOnlyWhenEightTimesTheCallsHaveShownNoWhole) {
  PlannerQuestions questions;
  EXPECT_EQ(questions.least_share(false, 1000), 50u);
  questions.answered_part(100);
  questions.answered_part(700);  // the first counts
  EXPECT_EQ(questions.least_share(false, 799), 50u);
  EXPECT_EQ(questions.least_share(false, 800), plan::kLeastShare);
  EXPECT_EQ(questions.least_share(true, 1), plan::kLeastShare) << "behind a first plan";
}

TEST(PlannerQuestions, TheBestStartIsAskedForThreeTimes) {
  PlannerQuestions questions;
  EXPECT_FALSE(questions.best_start(true));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(questions.best_start(false));
    questions.answered_early();
  }
  EXPECT_FALSE(questions.best_start(false));
}

TEST(PlannerQuestions, ALoopThatIsLeftOutComesBackAsAnotherOneAfterTwiceTheCalls) {
  PlannerQuestions questions;
  EXPECT_FALSE(questions.is_another(8, 1000)) << "none is left out";
  questions.leave_out(7, 100);
  EXPECT_FALSE(questions.is_another(8, 199));
  EXPECT_FALSE(questions.is_another(7, 200));
  EXPECT_TRUE(questions.is_another(8, 200));
}

}  // namespace
}  // namespace reprise::replay
