#include "tools/report/compare/compare.h"

#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tools/report/compare/computing.h"
#include "tools/report/log/measured.h"
#include "tools/report/log/redacted.h"

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
  RunLog before_ = on_a_link(parse_run_log(tools::test::sample_run_log()), 24'000'000'000, 24'000'000'000);
  RunLog after_ = before_;
  static RunLog on_a_link(RunLog log, uint64_t to_device, uint64_t to_host) {
    log.link_h2d_bytes_per_s = to_device;
    log.link_d2h_bytes_per_s = to_host;
    return log;
  }
  Json data() const { return compare_data({"a.run", &before_}, {"b.run", &after_}); }
};

TEST_F(Compare, AFasterRunInLessMemoryIsBetter) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  after_.peak_device_bytes -= 1 << 20;
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "good");
  EXPECT_EQ(compare_summary(data),
            "A planned iteration of B took 50.0 % less than one of A (405 ns instead of 810 ns), in 1.0 MiB less "
            "memory. Of an iteration that was measured, computing and own copies took 190 ns in both, all else "
            "(waiting, moving, launching) 210 ns instead of 610 ns.");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("change"), "-50.0 %");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("tone"), "good");
  EXPECT_EQ(row_of(data, "Moved, per planned iteration").at("change"), "the same");
}

// As the page of each run has it: with what the program holds around Reprise.
TEST_F(Compare, APeakIsThatOfThePages) {
  before_.peak_used_bytes = before_.peak_device_bytes + (1 << 20);
  after_.outside_bytes = 3 << 20;
  EXPECT_EQ(row_of(data(), "Peak device memory").at("before"), "10.0 MiB");
  EXPECT_EQ(row_of(data(), "Peak device memory").at("after"), "12.0 MiB");
  EXPECT_TRUE(has(compare_summary(data()), "in 2.0 MiB more memory"));
}

// That nothing was waited for, or moved, is a figure.
TEST_F(Compare, NoWaitingIsShownAsNone) {
  for (RunIteration& it : after_.iterations) it.stall_ns = it.offload_bytes = it.reload_bytes = 0;
  const Json waiting = row_of(data(), "Waiting, per planned iteration");
  EXPECT_EQ(waiting.at("after"), "0 ns");
  EXPECT_EQ(waiting.at("tone"), "good");
  EXPECT_EQ(row_of(data(), "Moved, per planned iteration").at("after"), "0 B");
}

// Less than that can be.
TEST_F(Compare, NothingIsAllGoneThatIsNot) {
  for (RunIteration& it : before_.iterations) it.stall_ns = 14'100'000;
  for (RunIteration& it : after_.iterations) it.stall_ns = 2'000;
  EXPECT_EQ(row_of(data(), "Waiting, per planned iteration").at("change"), "below -99.9 %");
  for (RunIteration& it : after_.iterations) it.stall_ns = 14'100;
  EXPECT_EQ(row_of(data(), "Waiting, per planned iteration").at("change"), "-99.9 %");
}

TEST_F(Compare, TimesThatReadAlikeAreNotSaidTwice) {
  const std::string alike = "A planned iteration of B took as long as one of A (810 ns in both), in the same memory.";
  EXPECT_EQ(compare_summary(data()).find(alike), 0u) << compare_summary(data());
  for (RunLog* log : {&before_, &after_}) {
    for (RunIteration& it : log->iterations) it.wall_ns = 1'720'000'000 + (log == &after_ ? 1 : 0);
  }
  EXPECT_TRUE(has(compare_summary(data()), "(1.72 s in both)"));
}

// With several measured iterations, the comparison uses the one on the run's page, not their mean.
TEST_F(Compare, ComputingIsThatOfTheIterationOfThePage) {
  const std::optional<uint64_t> shown = measured_iteration(after_);
  ASSERT_TRUE(shown);
  RunIteration other = after_.iterations.back();
  other.index = *shown + 1;
  other.wall_ns += 500;
  after_.iterations.push_back(other);
  RunOverlap sample = after_.overlaps.front();
  sample.iteration = other.index;
  sample.compute_ns += 100;
  after_.overlaps.push_back(sample);
  EXPECT_EQ(computing_of(after_).computing_ns, computing_of(before_).computing_ns);
}

TEST_F(Compare, RunsOfTwoSafetiesPromiseDifferentThings) {
  before_.safety = "strict";
  after_.safety = "trusted";
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(
      compare_summary(data()).rfind("A ran with --safety strict, B with trusted, which promise different things. ", 0),
      0u)
      << compare_summary(data());
}

TEST_F(Compare, WhatAnIterationHasOnAverageIsRounded) {
  for (RunIteration& it : after_.iterations) it.vmm_calls = 11;
  after_.iterations.back().vmm_calls = 12;
  const size_t planned = static_cast<size_t>(std::count_if(after_.iterations.begin(), after_.iterations.end(),
                                                           [](const RunIteration& it) { return it.planned; }));
  ASSERT_GE(planned, 1u);
  const uint64_t sum = 11 * planned + (after_.iterations.back().planned ? 1 : 0);
  EXPECT_EQ(row_of(data(), "Memory-mapping calls, per planned iteration").at("after"),
            std::to_string((2 * sum + planned) / (2 * planned)));
}

// Iterations of one run differ, too: no more than these do is no difference of the runs.
TEST_F(Compare, WhatIterationsDifferByIsNoDifferenceOfRuns) {
  const auto with_walls = [](RunLog& log, const std::vector<uint64_t>& walls) {
    RunIteration one = log.iterations.back();
    log.iterations.resize(1);
    for (const uint64_t wall : walls) {
      ++one.index;
      one.wall_ns = wall;
      log.iterations.push_back(one);
    }
  };
  with_walls(before_, {780, 790, 800, 810, 820, 2000});
  with_walls(after_, {795, 803, 813, 822, 838, 900});
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(compare_summary(data()).find("A planned iteration of B took 1.5 % more than one of A (817 ns instead of "
                                         "805 ns), in the same memory, no difference beyond the spread of iterations "
                                         "(the middle half of A's took 792 ns to 817 ns, of B's 805 ns to 834 ns)."),
            0u)
      << compare_summary(data());
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("change"), "+1.5 %");
  with_walls(after_, {835, 843, 853, 862, 878, 940});
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "bad");
  EXPECT_FALSE(has(compare_summary(data()), "no difference"));
  with_walls(before_, {800});
  with_walls(after_, {813});
  EXPECT_EQ(data().at("verdict").at("tone"), "note") << "of one iteration the spread is not known";
  with_walls(after_, {860});
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
}

TEST_F(Compare, ASlowerRunIsWorse) {
  for (RunIteration& it : after_.iterations) it.wall_ns *= 3;
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
}

// The same plan on a device with a slower clock, or beside other work.
TEST_F(Compare, SlowerKernelsAreNotThePlans) {
  for (RunIteration& it : after_.iterations) it.wall_ns += 190;
  for (RunOverlap& sample : after_.overlaps) sample.compute_ns += 190;
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "note");
  EXPECT_EQ(compare_summary(data),
            "A planned iteration of B took 23.5 % more than one of A (1.0 us instead of 810 ns), in the same memory. "
            "Of an iteration that was measured, computing and own copies took 380 ns instead of 190 ns, all else "
            "(waiting, moving, launching) 610 ns in both. The kernels are the same: how fast they run is the device's "
            "clock or other load, and no plan's doing.");
  const Json computing = row_of(data, "Computing and own copies, of an iteration that was measured");
  EXPECT_EQ(computing.at("before"), "190 ns");
  EXPECT_EQ(computing.at("after"), "380 ns");
  EXPECT_EQ(computing.at("tone"), "note");
  EXPECT_EQ(row_of(data, "All else of it: waiting, moving, launching").at("change"), "the same");
}

// Its parts do not add up to what medians differ by: nothing is said of whose doing that is, and no part is better.
TEST_F(Compare, AMeasuredIterationUnlikeMostDoesNotSayWhoseDoingItIs) {
  const std::optional<uint64_t> shown = measured_iteration(after_);
  ASSERT_TRUE(shown);
  const uint64_t measured = planned_iteration(after_, *shown)->wall_ns;
  for (RunOverlap& sample : after_.overlaps) sample.compute_ns += 190;
  for (uint64_t more = 1; more <= 4; ++more) {
    RunIteration other = after_.iterations.back();
    other.index += 1;
    other.wall_ns = 2 * measured;
    after_.iterations.push_back(other);
  }
  const std::string unlike =
      "That of B is iteration " + std::to_string(*shown) +
      ", which took 50 % less than the median: how much of what most iterations differ by is computing is not known.";
  EXPECT_TRUE(has(compare_summary(data()), unlike));
  EXPECT_FALSE(has(compare_summary(data()), "no plan's doing"));
  EXPECT_EQ(data().at("verdict").at("tone"), "bad") << "a planned iteration did take longer";
  EXPECT_EQ(row_of(data(), "All else of it: waiting, moving, launching").at("tone"), "note");
  std::swap(before_, after_);
  EXPECT_EQ(data().at("verdict").at("tone"), "good");
  EXPECT_TRUE(has(compare_summary(data()), " That of A is iteration"));
  EXPECT_EQ(row_of(data(), "All else of it: waiting, moving, launching").at("tone"), "note");
}

TEST_F(Compare, WhatIsComputedAgainIsThePlans) {
  for (RunIteration& it : after_.iterations) {
    it.wall_ns += 190;
    it.repeated_launches = 3;
  }
  for (RunOverlap& sample : after_.overlaps) sample.compute_ns += 190;
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
  EXPECT_EQ(row_of(data(), "Computing and own copies, of an iteration that was measured").at("tone"), "bad");
  EXPECT_TRUE(has(compare_summary(data()), " Of B 3 launches compute again what its plan had given up, of A 0."));
}

TEST_F(Compare, WithoutAMeasuredIterationItIsSaidThatComputingIsNotKnown) {
  for (RunIteration& it : after_.iterations) it.wall_ns *= 3;
  after_.overlaps.clear();
  EXPECT_TRUE(
      has(compare_summary(data()), " How much of that is computing is not known: no iteration of B was measured."));
  const Json computing = row_of(data(), "Computing and own copies, of an iteration that was measured");
  EXPECT_EQ(computing.at("before"), "190 ns");
  EXPECT_EQ(computing.at("after"), "");
  EXPECT_EQ(computing.at("change"), "");
}

TEST_F(Compare, ARunThatFailedIsNotComparedAsAWhole) {
  for (RunIteration& it : before_.iterations) it.planned = false;
  before_.ending = "exit code 1";
  EXPECT_EQ(compare_summary(data()), "A failed (exit code 1): the runs as a whole are not compared.");
  EXPECT_EQ(data().at("verdict").at("tone"), "bad");
  EXPECT_EQ(row_of(data(), "Ended").at("before"), "exit code 1");
  before_.iterations = after_.iterations;  // planned ones do compare
  EXPECT_EQ(compare_summary(data()).find("A failed (exit code 1). A planned iteration of B took as long as one of A"),
            0u)
      << compare_summary(data());
}

TEST_F(Compare, RunsOfDifferentProgramsSayNothingAboutEachOther) {
  before_.program = "/usr/bin/trainer";
  after_.program = "./vector_add";
  after_.ending = "exit code 2";
  EXPECT_EQ(compare_summary(data()),
            "A and B are runs of different programs, trainer and vector_add, and B failed (exit code 2): their times "
            "say nothing about each other.");
  EXPECT_EQ(data().at("program"), "trainer and vector_add");
  before_.program = "/opt/vector_add";
  EXPECT_FALSE(has(compare_summary(data()), "different"));
}

// A name that was redacted is no name: hashes of the executables decide, and say nothing where there are none.
TEST_F(Compare, ARedactedRunIsOfTheProgramOfItsHash) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  before_.program = "/usr/bin/trainer";
  after_.program = kRedacted;
  before_.program_hash = after_.program_hash = "00000000000000ab";
  EXPECT_EQ(compare_summary(data()).find("A planned iteration of B took 50.0 % less"), 0u) << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "good");
  EXPECT_EQ(data().at("program"), "/usr/bin/trainer");
  EXPECT_EQ(row_of(data(), "Program").at("change"), "the same");
  after_.program_hash = "00000000000000cd";
  for (const char* name : {"/usr/bin/trainer", kRedacted}) {
    before_.program = name;
    EXPECT_EQ(
        compare_summary(data()),
        "A and B are runs of different programs, by the hashes of these: their times say nothing about each other.");
    EXPECT_EQ(row_of(data(), "Program").at("change"), "differs");
    EXPECT_EQ(row_of(data(), "Time per planned iteration").at("change"), "");
  }
  for (const char* none : {"", "0000000000000000"}) {
    after_.program_hash = none;
    EXPECT_EQ(compare_summary(data()).find("It is not known whether A and B are runs of one program, so neither is "
                                           "better for its times. A planned iteration of B took 50.0 % less"),
              0u)
        << compare_summary(data());
    EXPECT_EQ(data().at("verdict").at("tone"), "note");
    EXPECT_EQ(row_of(data(), "Program").at("change"), "not known");
    EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "note");
  }
}

// What it was called with has no hash. Planned iterations have.
TEST_F(Compare, RedactedArgumentsAreNotKnown) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  before_.program = after_.program = kRedacted;
  before_.program_hash = after_.program_hash = "00000000000000ab";
  before_.iteration_hashes = after_.iteration_hashes = {"00aa"};
  after_.arguments = kRedacted;
  for (const char* arguments : {"--steps 5", kRedacted}) {
    before_.arguments = arguments;
    EXPECT_EQ(data().at("verdict").at("tone"), "good");
    EXPECT_FALSE(has(compare_summary(data()), "arguments"));
    EXPECT_EQ(row_of(data(), "Arguments").at("change"), "not known");
    EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "good");
    EXPECT_EQ(row_of(data(), "Time of the run").at("change"), "") << "of how many steps?";
  }
  after_.iteration_hashes = {"00bb"};
  EXPECT_EQ(compare_summary(data()), "A and B planned different iterations: their times say nothing about each other.");
  for (RunIteration& it : before_.iterations) it.planned = false;
  before_.iteration_hashes.clear();
  before_.start_ns = after_.start_ns = 1000;
  before_.end_ns = 3000;
  after_.end_ns = 2000;
  EXPECT_EQ(compare_summary(data()).find("It is not known whether A and B were called with the same arguments, so "
                                         "neither is better for its times. B as a whole took 50.0 % less than A"),
            0u)
      << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
}

// Of one program, with half as much work in an iteration of B.
TEST_F(Compare, OtherIterationsSayNothingAboutEachOther) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  before_.arguments = "--batch 16";
  after_.arguments = "--batch 10";
  before_.iteration_hashes = {"00aa"};
  after_.iteration_hashes = {"00bb"};
  EXPECT_EQ(compare_summary(data()),
            "A and B were called with different arguments (--batch 16 and --batch 10), and planned different "
            "iterations: their times say nothing about each other.");
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Arguments").at("before"), "--batch 16");
  EXPECT_EQ(row_of(data(), "Arguments").at("change"), "differs");
  EXPECT_EQ(row_of(data(), "Planned iteration, by its hash").at("after"), "00bb");
  EXPECT_EQ(row_of(data(), "Planned iteration, by its hash").at("change"), "differs");
  for (const char* label : {"Time per planned iteration", "Time of the run", "Peak device memory"}) {
    EXPECT_EQ(row_of(data(), label).at("tone"), "note") << label;
    EXPECT_EQ(row_of(data(), label).at("change"), "") << label;
  }
  after_.arguments = before_.arguments;
  EXPECT_EQ(compare_summary(data()), "A and B planned different iterations: their times say nothing about each other.");
}

// More steps of the same kind.
TEST_F(Compare, OtherArgumentsWithTheSameIterationAreSaid) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  before_.arguments = "--steps 5";
  after_.arguments = "--steps 9";
  before_.iteration_hashes = after_.iteration_hashes = {"00aa"};
  EXPECT_EQ(compare_summary(data()),
            "A and B were called with different arguments (--steps 5 and --steps 9), and planned the same iteration. A "
            "planned iteration of B took 50.0 % less than one of A (405 ns instead of 810 ns), in the same memory. Of "
            "an iteration that was measured, computing and own copies took 190 ns in both, all else (waiting, moving, "
            "launching) 210 ns instead of 610 ns.");
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("change"), "-50.0 %");
  EXPECT_EQ(row_of(data(), "Time of the run").at("change"), "");
  before_.iteration_hashes.clear();
  EXPECT_EQ(compare_summary(data()),
            "A and B were called with different arguments (--steps 5 and --steps 9): their times as a whole are not "
            "compared.");
}

// What the device or its link did is no plan's doing.
TEST_F(Compare, OnTwoMachinesNeitherIsBetterForItsTimes) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  const auto link = [](RunLog& log, uint64_t to_device, uint64_t to_host) { log = on_a_link(log, to_device, to_host); };
  link(before_, 45'000'000, 35'000'000);
  link(after_, 24'000'000'000, 24'000'000'000);
  EXPECT_EQ(compare_summary(data()).find("A and B ran on different links, more than a tenth apart, A on 45.0 MB/s to "
                                         "the device and 35.0 MB/s back, B on 24.0 GB/s each way, and their times are "
                                         "of these, too. A planned iteration of B took 50.0 % less than one of A"),
            0u)
      << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Link, as measured").at("change"), "differs");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("change"), "-50.0 %");
  link(after_, 42'000'000, 36'000'000);  // as one link is measured twice
  EXPECT_EQ(data().at("verdict").at("tone"), "good");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "good");
  EXPECT_EQ(row_of(data(), "Link, as measured").at("change"), "the same");
  link(after_, 40'000'000, 36'000'000);
  EXPECT_EQ(data().at("verdict").at("tone"), "note") << "more than a tenth apart";
  before_.device = "NVIDIA H100";
  after_.device = "NVIDIA H200";
  EXPECT_EQ(compare_summary(data()).find("A and B ran on different devices, A on NVIDIA H100, B on NVIDIA H200, and"),
            0u)
      << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
}

// A device that had no chunk free for measuring, or an older log of a replay.
TEST_F(Compare, OnLinksThatAreNotKnownNeitherIsBetterForItsTimes) {
  for (RunIteration& it : after_.iterations) it.wall_ns /= 2;
  after_ = on_a_link(after_, 0, 0);
  EXPECT_EQ(compare_summary(data()).find("It is not known how fast the link of B was, so neither is better for its "
                                         "times. A planned iteration of B took 50.0 % less than one of A"),
            0u)
      << compare_summary(data());
  EXPECT_EQ(data().at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Time per planned iteration").at("tone"), "note");
  EXPECT_EQ(row_of(data(), "Link, as measured").at("before"), "24.0 GB/s each way");
  EXPECT_EQ(row_of(data(), "Link, as measured").at("after"), "not known");
  EXPECT_EQ(row_of(data(), "Link, as measured").at("change"), "");
  before_ = on_a_link(before_, 0, 0);
  EXPECT_EQ(
      compare_summary(data()).find("It is not known how fast the links of A and B were, so neither is better for "), 0u)
      << compare_summary(data());
  after_ = on_a_link(after_, 24'000'000'000, 24'000'000'000);
  EXPECT_EQ(compare_summary(data()).find("It is not known how fast the link of A was, so"), 0u)
      << compare_summary(data());
}

TEST_F(Compare, WhatIsNotKnownIsNotCompared) {
  after_ = parse_run_log("{\"kind\":\"start\"}\n");
  const Json data = this->data();
  EXPECT_EQ(data.at("verdict").at("tone"), "note");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("after"), "");
  EXPECT_EQ(row_of(data, "Time per planned iteration").at("change"), "");
}

// Nothing, and nothing known, are not the same.
TEST_F(Compare, ARunWithoutPlannedIterationsHasNoFiguresOfThem) {
  for (RunIteration& it : after_.iterations) it.planned = false;
  const Json data = this->data();
  for (const char* label : {"Waiting, per planned iteration", "Moved, per planned iteration",
                            "Memory-mapping calls, per planned iteration"}) {
    const Json row = row_of(data, label);
    EXPECT_NE(row.at("before"), "") << label;
    EXPECT_EQ(row.at("after"), "") << label;
    EXPECT_EQ(row.at("change"), "") << label;
  }
}

}  // namespace
}  // namespace reprise::report
