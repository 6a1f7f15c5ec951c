// Every row of hooks.def that ends or changes memory is forwarded behind the work that was called before it, on a
// device that Reprise does not manage, too.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

Words command(const Words& names) {
  return joined({built("bin/ends_program"), built("bin/hash_kernels.cubin")}, names);
}

// Each of these launches takes 40 ms in the thread that makes it.
void expect_order(const Words& names) {
  const Environment slow = {{"REPRISE_SIM_DEVICES", "2"},
                            {"REPRISE_SIM_FAIL", "launch-of-mix2=+40000"},
                            {"REPRISE_SIM_STRICT", "0"}};  // what the device lacks is a call, too
  const Outcome got = well(run(command(names), merged(preloaded("64MiB"), slow)));
  std::string expected;
  for (const std::string& name : names) expected += name + " behind\n";
  EXPECT_EQ(got.out, expected) << got.err;
}

TEST(EndsTest, WhatEndsMemoryComesBehindTheWorkThatUsesIt) {
  const Outcome table = run(command({}), simulated_device());
  std::istringstream lines(table.out);
  Words forwarded;
  int hooked = 0;
  for (std::string name, row_class; lines >> name >> row_class;) {
    if (row_class != "hooked") {
      forwarded.push_back(name);
      continue;
    }
    ++hooked;
    expect_order({name});
  }
  expect_order(forwarded);
  EXPECT_GE(hooked, 10);
  EXPECT_GE(forwarded.size(), 20u);
}

}  // namespace
}  // namespace reprise::e2e
