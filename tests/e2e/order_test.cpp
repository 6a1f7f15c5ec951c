// Programs whose order is easily lost: captures beside eager work, several threads, contexts and default streams, the
// end of a context. The same lines plain and under a budget in which the largest call just fits.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

struct Case {
  const char* name;
  int mib;                  // of each buffer
  const char* budget;       // fits the largest call
  bool calls_late = false;  // behind the end of the driver, which answers CUDA_ERROR_DEINITIALIZED
};

class OrderTest : public ::testing::TestWithParam<std::tuple<Case, const char*>> {};

TEST_P(OrderTest, SaysTheSameWithinTheBudget) {
  const auto& [subject, granularity] = GetParam();
  const Words argv = {built("bin/order_program"), subject.name, std::to_string(subject.mib)};
  const Environment machine =
      merged(simulated_device(), {{"REPRISE_SIM_GRANULARITY", granularity}, {"REPRISE_SIM_DEVICES", "2"}});
  const Outcome plain = well(run(argv, machine, 30));
  ASSERT_EQ(plain.out.find("error") != std::string::npos, subject.calls_late) << plain.out;
  const Outcome managed = well(run(argv, merged(preloaded(subject.budget), machine), 30));
  EXPECT_EQ(managed.out, plain.out) << managed.err;
}

constexpr Case kCases[] = {
    {"blocking_copy", 6, "16MiB"},  {"capture_eviction", 6, "14MiB"}, {"capture_eviction", 2, "6MiB"},
    {"capture_joined", 6, "14MiB"}, {"capture_events", 16, "48MiB"},  {"capture_untouched", 6, "20MiB"},
    {"reset", 6, "14MiB"},          {"release", 6, "14MiB"},          {"destroy", 6, "14MiB"},
    {"other_context", 6, "8MiB"},   {"graph_launches", 6, "14MiB"},   {"graph_launches", 2, "8MiB"},
    {"per_thread", 6, "16MiB"},     {"two_contexts", 6, "16MiB"},     {"exit_handler", 6, "8MiB", true},
    {"peer_order", 6, "16MiB"},     {"event_times", 6, "14MiB"},
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Case, const char*>>& parameters) {
  const Case& subject = std::get<0>(parameters.param);
  return std::string(subject.name) + "_" + subject.budget + "_" + std::get<1>(parameters.param);
}

INSTANTIATE_TEST_SUITE_P(Programs, OrderTest,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values("64KiB", "2MiB")), name_of);

}  // namespace
}  // namespace reprise::e2e
