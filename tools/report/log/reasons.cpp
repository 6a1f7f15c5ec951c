#include "tools/report/log/reasons.h"

#include <algorithm>
#include <iterator>

#include "preload/base/run_log_keys.h"

namespace reprise::report {
namespace {

namespace words = run_log::on_demand;

constexpr char kNoneCouldBe[] = "none could be made";
constexpr char kNothingRepeats[] = "nothing in it repeats as a plan needs it";
constexpr char kNoPlan[] = "No plan was made: {reason}. {then}";
constexpr char kCouldNot[] = "Plan {plan} was to come in force and could not ({times}): {reason}.";
constexpr char kNeverBegan[] = "Plan {plan} never came in force: {reason}.";
constexpr char kRepeatItself[] = "Let it repeat itself";
constexpr char kRunLonger[] = "Run longer, or plan first";
constexpr char kPlanFirst[] = "reprise record; reprise plan; reprise replay";
#define REPEAT                                                                                                      \
  "Plans are for loops whose iterations make the same calls with the same sizes: a recording needs three of them, " \
  "`reprise run` five, as it plans while they pass. Fixed shapes, frees in a fixed order and a longer run help; "   \
  "`reprise_mark(\"iteration\")` says where one begins."
#define PLANNED_ONCE " A plan that is made once serves all later runs from the first iteration on."

constexpr ReasonRow kTooLate = {words::unfinished.name,
                                "it ended too soon for one",
                                "note",
                                "Plan {plan} was ready too late: {reason}.",
                                kRunLonger,
                                "The plan came with the last iterations." PLANNED_ONCE,
                                kPlanFirst};

constexpr ReasonRow kRows[] = {
    {words::no_repetition.name, kNothingRepeats, "note", kNoPlan, kRepeatItself, REPEAT, "", true},
    {words::no_iteration.name, kNothingRepeats, "note", kNoPlan, kRepeatItself, REPEAT, "", true},
    {words::too_small.name, "the budget is too small for one", "note", kNoPlan},
    {words::no_room.name, "the device had no room for one", "note", kNoPlan},
    {words::no_plan.name, kNoneCouldBe, "note", kNoPlan, "Plan first",
     "Called by hand the planner says more, and takes the time that it needs.", kPlanFirst},
    {words::unfinished.name, "it ended too soon for one", "note", kNoPlan, kRunLonger,
     "The program ended before the planner." PLANNED_ONCE, kPlanFirst, true},
    {words::fits.name, kNoneCouldBe, "good", "Nothing had to be planned: {reason}."},
    {words::refused.name, kNoneCouldBe, "bad", kCouldNot},
    {words::unusable.name, kNoneCouldBe, "bad", kCouldNot},
    {words::never_began.name, kNoneCouldBe, "bad", kNeverBegan, "Plan for the program as it runs now",
     "The plan is of other iterations: record again with these arguments, or use `reprise run`.",
     "reprise record -o new.trace -- program ..."},
    {words::left.name, kNoneCouldBe, "note", "Plan {plan} ruled no iteration: {reason}."},
    {words::not_recorded.name, "nothing was recorded that it could be made of", "note", kNoPlan},
    {"", kNoneCouldBe, "note", kNoPlan},
};

constexpr ReasonRow kNeverBeganInRun = {words::never_began.name,
                                        kNoneCouldBe,
                                        "bad",
                                        kNeverBegan,
                                        kRepeatItself,
                                        "What it did behind the recorded iterations was not like them. " REPEAT};
constexpr ReasonRow kUnlikePlan = {"", "", "", "", kRepeatItself, "No iteration was like the plan. " REPEAT};
constexpr ReasonRow kNoPlanInReplay = {words::no_plan.name,
                                       kNoneCouldBe,
                                       "note",
                                       kNoPlan,
                                       "Give it a plan that can be used",
                                       "The one that was named cannot: the reason stands above.",
                                       "reprise record -o a.trace -- program ...; reprise plan a.trace -o a.plan"};

}  // namespace

const ReasonRow& too_late_row() { return kTooLate; }
const ReasonRow& unlike_plan_row() { return kUnlikePlan; }

const ReasonRow& row_of(const RunReason& reason, const std::string& mode) {
  if (reason.cause == words::unfinished.name && reason.plan) return kTooLate;
  if (reason.cause == words::never_began.name && mode == "run") return kNeverBeganInRun;
  if (reason.cause == words::no_plan.name && mode == "replay") return kNoPlanInReplay;
  return *std::find_if(std::begin(kRows), std::end(kRows) - 1,
                       [&reason](const ReasonRow& row) { return reason.cause == row.cause; });
}

}  // namespace reprise::report
