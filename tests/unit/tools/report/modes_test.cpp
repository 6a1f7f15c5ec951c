// Times of iterations by what they ran by, and where a plan came in force: what the chart of a report draws.
#include "tests/support/test.h"
#include "tools/report/log/run_log.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

std::string iteration(uint64_t index, const std::string& by, uint64_t wall_ns) {
  return R"({"kind":"iteration","index":)" + std::to_string(index) + "," + by + R"(,"wall_ns":)" +
         std::to_string(wall_ns) + "}\n";
}
const std::string kOnDemand = R"("mode":"on_demand")";
const std::string kFirst = R"("mode":"planned","plan":0)";
const std::string kBetter = R"("mode":"planned","plan":1)";
const std::string kOther = R"("mode":"planned","plan":2)";

std::string activate(uint64_t iteration, uint64_t plan) {
  return R"({"kind":"activate","iteration":)" + std::to_string(iteration) + R"(,"plan":)" + std::to_string(plan) +
         "}\n";
}

TEST(Modes, AreOnDemandFirstPlanAndPlan) {
  const RunLog log =
      parse_run_log(iteration(0, kOnDemand, 900) + iteration(1, kOnDemand, 700) + R"({"kind":"plan","index":0})" +
                    "\n" + activate(2, 0) + iteration(2, kFirst, 400) + R"({"kind":"plan","index":1,"replaces":0})" +
                    "\n" + iteration(3, kFirst, 300) + iteration(4, kFirst, 350) + activate(5, 1) +
                    iteration(5, kBetter, 200) + iteration(6, kBetter, 220) + R"({"kind":"plan","index":2})" + "\n" +
                    activate(7, 2) + iteration(7, kOther, 50) + activate(8, 1) + iteration(8, kBetter, 210) +
                    R"({"kind":"end","iterations_planned":7,"iterations_on_demand":2})");
  const Inputs inputs{nullptr, nullptr, &log};
  std::vector<int> modes;
  for (const Json& row : iterations_section(inputs)) modes.push_back(row[3].get<int>());
  EXPECT_EQ(modes, (std::vector<int>{0, 0, 2, 2, 2, 1, 1, 1, 1}));
  EXPECT_EQ(modes_section(inputs), Json::parse("[[0,2,800,700,900],[2,3,350,300,400],[1,4,205,50,220]]"));
  EXPECT_EQ(in_force_section(inputs), Json::parse(R"([[2,0,"first"],[5,0,"better"],[7,1,"plan"]])"));
}

TEST(Modes, APlanOfAnEarlierRunIsMarkedAsSuch) {
  const RunLog log = parse_run_log(R"({"kind":"plan","index":3,"kept":1})"
                                   "\n" +
                                   activate(0, 3) + iteration(0, R"("mode":"planned","plan":3)", 100) +
                                   R"({"kind":"end","iterations_planned":1,"iterations_on_demand":0})");
  const Inputs inputs{nullptr, nullptr, &log};
  EXPECT_EQ(modes_section(inputs), Json::parse("[[1,1,100,100,100]]"));
  EXPECT_EQ(in_force_section(inputs), Json::parse(R"([[0,0,"kept"]])"));
  EXPECT_EQ(log.plan_count, 1u);
  EXPECT_TRUE(log.plans.kept);
}

TEST(Modes, ThereAreNoneWithoutALog) {
  EXPECT_EQ(modes_section({}), Json::array());
  EXPECT_EQ(in_force_section({}), Json::array());
}

}  // namespace
}  // namespace reprise::report
