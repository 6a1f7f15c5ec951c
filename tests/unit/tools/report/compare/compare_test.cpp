#include "tools/report/compare/compare.h"

#include <gtest/gtest.h>

#include "tests/support/sample.h"

namespace reprise::report {
namespace {

Json row_of(const Json& data, const std::string& label) {
  for (const Json& row : data.at("rows")) {
    if (row.at("label") == label) return row;
  }
  ADD_FAILURE() << "no row " << label;
  return {};
}

class Compare : public testing::Test {
 protected:
  RunLog before_ = parse_run_log(tools::test::sample_run_log());
  RunLog after_ = before_;
  Json data() const { return compare_data({"a.run", &before_}, {"b.run", &after_}); }
};

TEST_F(Compare, AFasterRunInLessMemoryIsBetter) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  after_.peak_device_bytes -= 1 << 20;
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "good");
  EXPECT_EQ(compare_summary(data),
            "A planned iteration of B took 50.0 % less than of A (410 ns instead of 820 ns), in 1.0 MiB less memory.");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("change"), "-50.0 %");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("tone"), "good");
  EXPECT_EQ(row_of(data, "Moved, per planned iteration").at("change"), "the same");
}

TEST_F(Compare, ASlowerRunIsWorse) {
  for (RunIteration& it : after_.iterations) it.wall_ns *= 3;
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
}

TEST_F(Compare, WhatIsNotKnownIsNotCompared) {
  after_ = parse_run_log("{\"kind\":\"start\"}\n");
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("after"), "");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("change"), "");
}

}  // namespace
}  // namespace reprise::report
